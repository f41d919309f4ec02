"""What a file of a stranger may ask of its reader. Each reader takes time in proportion to the file, or refuses it."""

from collections.abc import Collection, Iterator

from django.utils.translation import gettext as _

from books.files.formats.records import Record, Table, UnreadableFile, format_count

MAX_COLUMNS = 1_000
MAX_RECORDS = 10_000_000
# How deep JSON and XML may be nested. Records of books need five at most.
MAX_NESTING = 32
# Parsers of XML keep all names of elements and attributes in memory.
MAX_XML_NAMES = 1_000


def build_refusal(*limits: str) -> UnreadableFile:
    """Returns the error of a file that exceeds a limit; a further sentence says which, where that is known."""
    return UnreadableFile(" ".join([_("The file is too large or too nested to be read."), *limits]))


class Allowance:
    """How much more a file may fill in than its size says. It is `limit` at most."""

    def __init__(self, limit: int, sentence: str) -> None:
        self.limit = self.left = limit
        self.sentence = sentence

    def add(self, amount: int) -> None:
        self.left = min(self.limit, self.left + amount)

    def take(self, amount: int) -> None:
        """Raises UnreadableFile when nothing is left."""
        self.left -= amount
        if self.left < 0:
            raise build_refusal(self.sentence)


def bound_table(table: Table) -> Table:
    """Returns the table, whose records raise UnreadableFile beyond MAX_RECORDS. Raises it for too many columns."""
    require_few_columns(table.columns)
    return table._replace(records=iter_bounded(table.records))


def require_few_columns(columns: Collection[str]) -> None:
    if len(columns) > MAX_COLUMNS:
        raise build_refusal(_("It has more than %(count)s columns.") % {"count": format_count(MAX_COLUMNS)})


def iter_bounded(records: Iterator[Record]) -> Iterator[Record]:
    for count, record in enumerate(records, 1):
        if count > MAX_RECORDS:
            raise build_refusal(_("It has more than %(count)s records.") % {"count": format_count(MAX_RECORDS)})
        yield record


def require_flat(depth: int) -> None:
    if depth > MAX_NESTING:
        raise build_refusal(_("Its elements are nested deeper than %(count)d.") % {"count": MAX_NESTING})


def require_few_names(names: Collection[str]) -> None:
    if len(names) > MAX_XML_NAMES:
        limit = {"count": format_count(MAX_XML_NAMES)}
        raise build_refusal(_("Its elements and attributes have more than %(count)s names.") % limit)

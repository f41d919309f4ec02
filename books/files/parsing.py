"""Parses the records of a file as books: applies the librarian's rules to get values, and finds errors."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache, lru_cache, partial
from typing import Any, Literal, NamedTuple, cast

import msgspec
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.fields import Field

from books.book.fields import BOOK_FIELDS, MAX_LENGTHS, REQUIRED_FIELDS
from books.book.isbn import build_record_number, is_record_number
from books.book.match_keys import list_words
from books.book.texts import fold_loosely
from books.files.columns.cells import (
    EXACT_TEXTS,
    CellSource,
    find_reader,
    has_no_isbn,
    is_blank,
    list_sources,
    read_cells,
    read_field,
)
from books.files.columns.tables import list_kind_columns
from books.files.formats.records import MAX_SHOWN_NAME, Record, UnreadableFile, format_count, name_field
from books.files.reasons import (
    FIELD_NAMES,
    REASONS_BY_CODE,
    UNDECODABLE,
    UNKNOWN_AVAILABILITY,
    UNKNOWN_ID,
    describe_year,
)
from books.search.quality import IMPROBABLE_YEAR
from books.serializers import NonBlankBookSerializer
from library_site.db.integers import BIGINT_MAX, parse_integer

# The fields that catalogues of other libraries can fill in for a known ISBN.
COMPLETED_FIELDS = tuple(name for name in REQUIRED_FIELDS if name != "isbn")
# The serializer parses these. The availability is parsed separately.
IMPORTED_FIELDS = NonBlankBookSerializer.Meta.fields
INTEGER_FIELDS = tuple(field.name for field in BOOK_FIELDS if type(field.example) is int)
AVAILABLE_VALUES = {"true": True, "yes": True, "available": True, "false": False, "no": False, "lent": False}
# What introduces the names of those who made a book, after its title (ISBD, 1.4).
STATEMENT = " / "
INTRODUCTIONS = frozenset("by edited ed compiled written von hrsg herausgegeben bearbeitet par de por di".split())
# What a statement may leave out of the form of a name that a catalogue uses.
NO_NAMES = frozenset(
    "de la le les van von der den die das du del della of the da do dos di el al author verfasser verfasserin".split()
)
# Stands among the corrections of a record whose warnings the user accepts.
ACCEPTED = "accepted"


@cache
def get_fields(language: str | None) -> Mapping[str, Field[Any, Any, Any, Any]]:
    """REST framework caches some messages in the language of their first use, so each language has its own fields."""
    return dict(NonBlankBookSerializer().fields)


class ImportRules(msgspec.Struct, frozen=True):
    """The rules that a librarian chooses for a file.

    `mapping` has the column for each place (`books.files.columns.tables`), `defaults` the values for empty fields. A
    record matches the book with its isbn, else with its isbn13; with `match_by` "isbn" only the first, with "id" it
    matches first by id. `on_match` and `on_none` say what to do with a record that matches a book or none, and
    `take_doubtful` whether to import doubtful records. With `is_exact`, texts are not changed. With
    `leave_without_isbn`, records without an ISBN are left out, whatever else is wrong with them; with `use_number`, the
    number of the record is stored as their isbn. `format` is the name of the file's format; reasons name fields and
    records in its terms.
    """

    mapping: Mapping[str, str]
    match_by: Literal["isbn13", "isbn", "id"] = "isbn13"
    on_match: Literal["refuse", "replace", "fill", "leave"] = "refuse"
    on_none: Literal["add", "leave"] = "add"
    take_doubtful: bool = False
    defaults: Mapping[str, str] = {}
    is_exact: bool = False
    leave_without_isbn: bool = False
    use_number: bool = False
    format: str = ""


class ParsedRecord(NamedTuple):
    """A record with the values of a book, with the error why it has none, or one that is left out.

    `position` counts the records of the file from 1; `pk` is the id in the record, if ids matter. `sources` are the
    columns of the fields. `fields` are the fields of the error or warning, and `cells` the raw values of a record with
    an error. `defaults` are values for empty fields of a new book. With `is_accepted`, the user has accepted the
    warnings; with `has_number`, its isbn is the number of the record.
    """

    position: int
    raw: Record
    values: Mapping[str, Any]
    pk: int | None = None
    problem: str = ""
    warnings: tuple[str, ...] = ()
    sources: Mapping[str, Sequence[CellSource]] = {}
    is_left_out: bool = False
    format: str = ""
    fields: tuple[str, ...] = ()
    cells: Mapping[str, Any] = {}
    is_accepted: bool = False
    has_number: bool = False
    defaults: Mapping[str, Any] = {}

    def name_reason(self, field: str, sentence: str) -> str:
        """Returns the reason for an error or a warning about a field. It begins with the name of the field's column."""
        return name_cell(self.raw, self.sources, field, sentence)

    def add_warning(self, field: str, sentence: str) -> "ParsedRecord":
        warnings = (*self.warnings, self.name_reason(field, sentence))
        return self._replace(warnings=warnings, fields=(*self.fields, field))


class MissingColumns(UnreadableFile):
    """The file has no column for these fields, and no record can be imported without."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(_("The first line names no column %(names)s.") % {"names": ", ".join(names)})
        self.names = names


def require_mapped_fields(rules: ImportRules) -> None:
    """Raises MissingColumns if no record of the file can be imported."""
    has_key = "isbn" in rules.mapping or (rules.match_by == "id" and "id" in rules.mapping)
    only_changes = rules.on_none == "leave" and has_key
    given = {*rules.mapping, *rules.defaults, *(["isbn"] if rules.use_number and "id" in rules.mapping else [])}
    missing = [] if only_changes else [name for name in REQUIRED_FIELDS if name not in given]
    if missing:
        raise MissingColumns(missing)


def parse_records(
    records: Iterable[Record], rules: ImportRules, corrections: Mapping[int, Mapping[str, str]] = {}
) -> Iterator[ParsedRecord]:
    """`corrections` are by record position. Raises UnreadableFile."""
    sources = list_sources(rules.mapping, is_exact=rules.is_exact, headings=FIELD_NAMES.get(rules.format, {}))
    list_kinds = lru_cache(maxsize=16)(partial(list_kind_columns, mapping=rules.mapping))
    for position, record in enumerate(records, 1):
        checked = add_kind_problem(record, list_kinds(tuple(record.values)))
        yield parse_record(position, checked, rules, sources, corrections=corrections.get(position, {}))


def add_kind_problem(record: Record, columns: Iterable[tuple[str, Callable[[str], tuple[str, str]]]]) -> Record:
    """Adds the error or the warning about a record of a table that is no book, or may be none."""
    for column, describe in columns:
        text = str(record.values[column] or "")
        if text.strip() and not record.problem:
            problem, warning = describe(text)
            record = record._replace(problem=problem, warnings=(*record.warnings, *filter(None, [warning])))
    return record


def parse_record(
    position: int,
    record: Record,
    rules: ImportRules,
    sources: Mapping[str, Sequence[CellSource]],
    corrections: Mapping[str, str] = {},
) -> ParsedRecord:
    """`sources` come from the rules."""
    fields = {field: text for field, text in corrections.items() if field != ACCEPTED}
    build = partial(
        ParsedRecord, position, record, sources=sources, format=rules.format, is_accepted=ACCEPTED in corrections
    )
    cells, warnings = read_corrected(record, sources, fields, is_exact=rules.is_exact)
    defaults = {field: text for field, text in rules.defaults.items() if is_blank(cells.get(field))}
    cells |= defaults
    # A record that cannot be read may have an ISBN.
    if rules.leave_without_isbn and (record.values or not record.problem) and has_no_isbn(cells.get("isbn")):
        return build({}, is_left_out=True)
    if record.problem:
        return build({}, problem=record.problem)
    has_no_number = is_blank if rules.is_exact else has_no_isbn
    if rules.use_number and has_no_number(cells.get("isbn")) and (number := find_number(record, cells, rules.format)):
        # Then it is not the number of a book.
        cells |= {"isbn": number, "id": None}
    try:
        values = parse_values(cells)
        pk = parse_id(cells.get("id")) if rules.match_by == "id" else None
    except ValidationError as error:
        reasons = explain_errors(error, cells)
        named = (name_cell(record, sources, field, reason) for field, texts in reasons.items() for reason in texts)
        return build({}, problem=" ".join(named), fields=tuple(reasons), cells=cells)
    title = values.get("title", "")
    main = title if rules.is_exact or "title" in fields else cut_statement(title, values.get("author", ""))
    if main != title:
        sentence = _("The text is “%(text)s”, which may mean “%(mended)s”.") % {"text": title, "mended": main}
        warnings["title"] = name_cell(record, sources, "title", sentence)
    return build(
        {field: value for field, value in values.items() if field == "isbn" or field not in defaults},
        pk,
        warnings=(*record.warnings, *warnings.values()),
        fields=tuple(warnings),
        has_number=rules.use_number and is_record_number(values.get("isbn", "")),
        defaults={field: values[field] for field in defaults.keys() & values},
    )


def cut_statement(title: str, author: str) -> str:
    """Returns the title without the statement of responsibility that follows it in a catalogue's description. In other
    titles both parts are titles, perhaps with a name.
    """
    main, _mark, statement = title.rpartition(STATEMENT)
    if not main.strip():
        return title
    words = list_words(fold_loosely(statement))
    names = {word for word in list_words(fold_loosely(author.partition(";")[0])) if word.isalpha()} - NO_NAMES
    long_names = {word for word in names if len(word) > 1}
    if " ; " in statement or not INTRODUCTIONS.isdisjoint(words[:1]):
        return title if long_names.isdisjoint(words) else main.strip()
    # A single name may be a word, but not beside its initials.
    whole = long_names if len(long_names) > 1 else names
    return main.strip() if len(whole) > 1 and whole.issubset(words) else title


def find_number(record: Record, cells: Mapping[str, Any], format: str) -> str:
    """Returns the number of the record; in a table it is in a column."""
    if format in FIELD_NAMES:
        return record.number
    return build_record_number("" if is_blank(cells.get("id")) else str(cells["id"]))


def read_corrected(
    record: Record, sources: Mapping[str, Sequence[CellSource]], corrections: Mapping[str, str], *, is_exact: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the cells of a record and the warnings about them, by field. A correction is parsed like a cell, but a
    text is what the user means.
    """
    cells, warnings = read_cells(record.values, sources)
    for field, text in corrections.items():
        read = EXACT_TEXTS.get(field) or find_reader(field, "", is_exact=is_exact)
        cells[field], warning = read(text)
        warnings.pop(field, None)
        if warning:
            warnings[field] = name_cell(record, sources, field, warning)
    return cells, warnings


def name_cell(record: Record, sources: Mapping[str, Sequence[CellSource]], field: str, sentence: str) -> str:
    columns = sources.get(field)
    return name_field(read_field(field, record.values, columns)[0][:MAX_SHOWN_NAME] if columns else field, sentence)


def parse_values(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of a book. Raises ValidationError."""
    texts = {name: cells[name] for name in IMPORTED_FIELDS if cells.get(name) is not None}
    for name in INTEGER_FIELDS:
        if isinstance(texts.get(name), str):
            if name not in REQUIRED_FIELDS and is_blank(texts[name]):
                # Without an availability, a new book gets the default.
                del texts[name]
            else:
                texts[name] = parse_integer(texts[name].strip())
    values: dict[str, Any] = {}
    errors: dict[str, Any] = {}
    fields = get_fields(get_language())
    # Without the serializer, which takes as long again.
    for name, text in texts.items():
        try:
            values[name] = fields[name].run_validation(text)
        except ValidationError as error:
            errors[name] = error.detail
    cell = cells.get("available")
    available = cell if isinstance(cell, bool) else AVAILABLE_VALUES.get(str(cell).strip().lower())
    if available is None and not is_blank(cell):
        errors["available"] = [_(UNKNOWN_AVAILABILITY)]
    if errors:
        raise ValidationError(errors)
    return {**values, **({} if available is None else {"available": available})}


def parse_id(cell: Any) -> int | None:
    """Returns None for an empty cell. Raises ValidationError."""
    text = "" if cell is None else str(cell).strip()
    number = parse_integer(text) if text else None
    if text and (number is None or abs(number) > BIGINT_MAX):
        raise ValidationError({"id": [_(UNKNOWN_ID)]})
    return number


def explain_errors(error: ValidationError, cells: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns the errors of each field in a person's words."""
    problems = cast("dict[str, list[ErrorDetail]]", error.detail)
    return {
        name: list(dict.fromkeys(explain_error(name, detail, cells.get(name)) for detail in details))
        for name, details in problems.items()
    }


def explain_error(name: str, detail: ErrorDetail, cell: Any) -> str:
    """Returns the reason by the text of the cell, or by the code of the error. Errors of our own have neither."""
    if has_surrogates(cell):
        return _(UNDECODABLE)
    if name == "year" and isinstance(cell, str):
        return describe_year(cell)
    if name == "year" and type(cell) in (int, float) and abs(cell) > date.max.year:
        return str(IMPROBABLE_YEAR)
    reason = REASONS_BY_CODE.get(str(detail.code), "")
    return _(reason) % {"count": format_count(MAX_LENGTHS.get(name, 0))} if reason else str(detail)


def has_surrogates(text: Any) -> bool:
    return isinstance(text, str) and any("\ud800" <= character <= "\udfff" for character in text)

"""Reads the records of a file as books: the values that a librarian's rules take from them, and what is wrong."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache, partial
from typing import Any, Literal, NamedTuple, cast

import msgspec
from django.utils.translation import get_language, gettext_noop
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError

from books.files.columns.cells import (
    Source,
    find_reader,
    has_no_isbn,
    is_blank,
    list_sources,
    read_cells,
    read_member,
)
from books.files.formats.records import Record, UnreadableFile, name_member
from books.files.reasons import (
    FIELD_NAMES,
    UNDECODABLE,
    UNKNOWN_AVAILABILITY,
    UNKNOWN_ID,
    describe_year,
)
from books.members import MEMBER_TABLE, REQUIRED_MEMBERS
from books.search.doubts import IMPROBABLE_YEAR
from books.serializers import NonBlankBookSerializer
from library_site.api.serializers import make_optional
from library_site.db.integers import BIGINT_MAX, parse_integer

# What the catalogues of other libraries know of a book whose ISBN is known.
COMPLETED_MEMBERS = tuple(name for name in REQUIRED_MEMBERS if name != "isbn")
# The serializer reads these; the availability has words of its own.
IMPORTED_MEMBERS = NonBlankBookSerializer.Meta.fields
INTEGER_MEMBERS = tuple(member.name for member in MEMBER_TABLE if type(member.example) is int)
AVAILABLE_VALUES = {"true": True, "yes": True, "available": True, "false": False, "no": False, "lent": False}
MAX_SHOWN_NAME = 64
# Sentences of REST framework: its own German ones are too familiar for librarians.
REWORDED_SENTENCES = (
    gettext_noop("Ensure this field has no more than {max_length} characters."),
    gettext_noop("Ensure this value is greater than or equal to {min_value}."),
    gettext_noop("Ensure this value is less than or equal to {max_value}."),
)


class ImportedBookSerializer(NonBlankBookSerializer):
    """A record that changes a book need not have all members."""

    class Meta(NonBlankBookSerializer.Meta):
        extra_kwargs = make_optional(NonBlankBookSerializer.Meta)


@cache
def get_serializer(language: str | None) -> ImportedBookSerializer:
    """REST framework keeps some sentences in the language in which it says them first."""
    return ImportedBookSerializer()


class ImportRules(msgspec.Struct, frozen=True):
    """What a librarian decides about a file.

    `mapping` has the column of each place (`books.files.columns.names`), `defaults` the texts of members that a record
    leaves empty. A record matches the book with its isbn, else with its isbn13; with `match_by` "isbn" only the first,
    with "id" first of all the one with its id. What becomes of a record that matches, of one that matches none, and
    whether doubtful ones are taken. The texts of an exact file are kept as they are.
    With `leave_without_isbn` a record that has no ISBN is left out, whatever else is wrong with it. `format` is the
    name of the file's, by which reasons name fields and records.
    """

    mapping: Mapping[str, str]
    match_by: Literal["isbn13", "isbn", "id"] = "isbn13"
    on_match: Literal["refuse", "replace", "fill", "leave"] = "refuse"
    on_none: Literal["add", "leave"] = "add"
    take_doubtful: bool = False
    defaults: Mapping[str, str] = {}
    is_exact: bool = False
    leave_without_isbn: bool = False
    format: str = ""


class ParsedRecord(NamedTuple):
    """A record with values of a book, or with the problem because of which it has none, or left out.

    `position` counts the records of the file from 1; `pk` is the id that the record names, if ids matter. `sources` are
    the columns of members. `members` are those that the problem or a doubt is about, and `cells` what a record with a
    problem has of each member.
    """

    position: int
    raw: Record
    values: Mapping[str, Any]
    pk: int | None = None
    problem: str = ""
    doubts: tuple[str, ...] = ()
    sources: Mapping[str, Sequence[Source]] = {}
    is_left_out: bool = False
    format: str = ""
    members: tuple[str, ...] = ()
    cells: Mapping[str, Any] = {}

    def name_reason(self, member: str, sentence: str) -> str:
        """Returns the reason of a problem or a doubt about a member, which begins with the name of its column."""
        return name_cell(self.raw, self.sources, member, sentence)


def require_mapped_members(rules: ImportRules) -> None:
    """Raises UnreadableFile if no record of the file can be imported."""
    has_key = "isbn" in rules.mapping or (rules.match_by == "id" and "id" in rules.mapping)
    only_changes = rules.on_none == "leave" and has_key
    members = [name for name in REQUIRED_MEMBERS if name not in rules.defaults]
    missing = [] if only_changes else [name for name in members if name not in rules.mapping]
    if missing:
        raise UnreadableFile(_("The first line names no column %(names)s.") % {"names": ", ".join(missing)})


def parse_records(
    records: Iterable[Record], rules: ImportRules, corrections: Mapping[int, Mapping[str, str]] = {}
) -> Iterator[ParsedRecord]:
    """`corrections` are by the positions of records. Raises UnreadableFile."""
    sources = get_sources(rules)
    for position, record in enumerate(records, 1):
        yield parse_record(position, record, rules, sources, corrections=corrections.get(position, {}))


def parse_record(
    position: int,
    record: Record,
    rules: ImportRules,
    sources: Mapping[str, Sequence[Source]],
    corrections: Mapping[str, str] = {},
) -> ParsedRecord:
    """`sources` are those of the rules."""
    build = partial(ParsedRecord, position, record, sources=sources, format=rules.format)
    if record.problem:
        return build({}, problem=record.problem)
    cells, doubts = read_corrected(record, sources, corrections, is_exact=rules.is_exact)
    cells |= {member: text for member, text in rules.defaults.items() if is_blank(cells.get(member))}
    if rules.leave_without_isbn and has_no_isbn(cells.get("isbn")):
        return build({}, is_left_out=True)
    try:
        values = parse_values(cells)
        pk = parse_id(cells.get("id")) if rules.match_by == "id" else None
    except ValidationError as error:
        explained = explain_errors(error, cells)
        problem = format_errors(explained, partial(name_cell, record, sources))
        return build({}, problem=problem, members=tuple(map(str, explained.detail)), cells=cells)
    return build(values, pk, doubts=(*record.doubts, *doubts.values()), members=tuple(doubts))


def read_corrected(
    record: Record, sources: Mapping[str, Sequence[Source]], corrections: Mapping[str, str], *, is_exact: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the cells of a record and the doubts about them, by member. A correction is read as a cell is."""
    cells, doubts = read_cells(record.values, sources)
    for member, text in corrections.items():
        cells[member], doubt, _is_enough = find_reader(member, "", is_exact=is_exact)(text)
        doubts.pop(member, None)
        if doubt:
            doubts[member] = name_cell(record, sources, member, doubt)
    return cells, doubts


def name_cell(record: Record, sources: Mapping[str, Sequence[Source]], member: str, sentence: str) -> str:
    columns = sources.get(member)
    return name_member(read_member(record.values, columns)[0][:MAX_SHOWN_NAME] if columns else member, sentence)


def get_sources(rules: ImportRules) -> dict[str, list[Source]]:
    headings = FIELD_NAMES.get(rules.format, {})
    return list_sources(rules.mapping, is_exact=rules.is_exact, headings=headings)


def parse_values(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Returns values of a book. Raises ValidationError."""
    texts = {name: cells[name] for name in IMPORTED_MEMBERS if cells.get(name) is not None}
    for name in INTEGER_MEMBERS:
        if isinstance(texts.get(name), str):
            if name not in REQUIRED_MEMBERS and is_blank(texts[name]):
                # As of an availability, a new book gets the default.
                del texts[name]
            else:
                texts[name] = parse_integer(texts[name].strip())
    unknown = {} if is_availability(cells.get("available")) else {"available": [_(UNKNOWN_AVAILABILITY)]}
    try:
        values: dict[str, Any] = get_serializer(get_language()).run_validation(texts)
    except ValidationError as error:
        raise ValidationError({**cast("dict[str, list[str]]", error.detail), **unknown}) from error
    if unknown:
        raise ValidationError(unknown)
    available = parse_available(cells.get("available"))
    return {**values, **({} if available is None else {"available": available})}


def is_availability(cell: Any) -> bool:
    return cell is None or isinstance(cell, bool) or str(cell).strip().lower() in ("", *AVAILABLE_VALUES)


def parse_available(cell: Any) -> bool | None:
    """Returns None for an empty cell; any other must be an availability."""
    return cell if cell is None or isinstance(cell, bool) else AVAILABLE_VALUES.get(str(cell).strip().lower())


def parse_id(cell: Any) -> int | None:
    """Returns None for an empty cell. Raises ValidationError."""
    text = "" if cell is None else str(cell).strip()
    number = parse_integer(text) if text else None
    if text and (number is None or abs(number) > BIGINT_MAX):
        raise ValidationError({"id": [_(UNKNOWN_ID)]})
    return number


def explain_errors(error: ValidationError, cells: Mapping[str, Any]) -> ValidationError:
    """Says of years, and of texts with lone surrogates, what is wrong with the cells themselves."""
    problems = cast("dict[str, list[str]]", error.detail)
    if "year" in problems and isinstance(cells["year"], str):
        problems = {**problems, "year": [describe_year(cells["year"])]}
    elif "year" in problems and type(cells["year"]) in (int, float) and abs(cells["year"]) > date.max.year:
        problems = {**problems, "year": [str(IMPROBABLE_YEAR)]}
    undecodable = {name: [_(UNDECODABLE)] for name in problems if has_surrogates(cells.get(name))}
    return ValidationError({**problems, **undecodable})


def has_surrogates(text: Any) -> bool:
    return isinstance(text, str) and any("\ud800" <= character <= "\udfff" for character in text)


def format_errors(error: ValidationError, name_reason: Callable[[str, str], str] = name_member) -> str:
    problems = cast("dict[str, list[str]]", error.detail)
    return " ".join(name_reason(name, message) for name, messages in problems.items() for message in messages)

"""Reads and writes books as RIS, the format of reference managers."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, BinaryIO

from django.utils.translation import gettext as _

from books.book.fields import BOOK_FIELDS
from books.book.isbn import build_record_number, split_record_number
from books.book.texts import clean_white_space
from books.files.columns.qualifiers import choose_isbn
from books.files.formats.encodings import (
    AMBIGUOUS,
    UNSAFE_BLANKS,
    escape_characters,
    find_encoding,
    iter_lines,
    unescape_characters,
)
from books.files.formats.record_kinds import describe_kind
from books.files.formats.records import (
    COLUMNS,
    MAX_RECORD_CHARACTERS,
    ExportedBook,
    Pages,
    Record,
    Table,
    describe_too_long,
    iter_texts,
    name_field,
    read_availability,
)

# Some programs write one space after the tag.
LINE_PATTERN = re.compile(r"([A-Z][A-Z0-9]) {1,2}-(?: (.*)|)", re.DOTALL)
BEGIN, END_TAG = "TY", "ER"
FIELD_TAGS = {"id": ("ID",), **{field.name: field.ris for field in BOOK_FIELDS}}
READ_TAGS = frozenset(chain([BEGIN, END_TAG], *FIELD_TAGS.values()))
# The year, and perhaps the month, the day, and any other text, but no other year.
YEAR_PATTERN = re.compile(r"(-?[0-9]+)(?:/(?!.*(?<![0-9])(?!\1)[0-9]{4}(?![0-9])).*)?")
# Some programs number the records.
NUMBER_PATTERN = re.compile(r"\s*[0-9]+\.?\s*")
# A value is one line without spaces around it. Other programs recognise more line ends and spaces than we do.
UNSAFE_CHARACTERS = re.compile(rf"[\x00-\x1f\x7f-\x9f]|{UNSAFE_BLANKS}|{AMBIGUOUS}")
LINE_ENDS = "\r\n"
# The tag, which may be empty, and the text after it.
Line = tuple[str, str]


def read_ris(stream: BinaryIO, encoding_name: str = "") -> Table:
    encoding, warning = find_encoding(stream, encoding_name)
    pieces = iter_tag_pieces(iter_lines(stream, encoding))
    left_out = Counter[str]()
    records = (parse_piece(number, lines, left_out) for number, lines in pieces)
    return Table(COLUMNS, records, f"RIS, {encoding.description}", warning, left_out=left_out)


def iter_tag_pieces(lines: Iterable[str]) -> Iterator[tuple[int, list[Line]]]:
    """Yields the first line number and the lines of each record, and of text between records; of a record that is too
    long its beginning and its end, and of a tag that is not read only whether it has a text.
    """
    piece: list[Line] = []
    unread = set[Line]()
    start, last_tag, field, characters = 1, "", "", 0
    for number, line in enumerate(lines, 1):
        text = line.strip(LINE_ENDS)
        tag, value = match.groups("") if (match := LINE_PATTERN.fullmatch(text)) else ("", text)
        if piece and (tag == BEGIN or last_tag == END_TAG):
            yield start, piece
            piece, characters = [], 0
            unread.clear()
        field = tag or field
        if piece and field and field not in READ_TAGS:
            unread_line = (field, "x" if value.strip() else "")
            if unread_line not in unread:
                piece.append(unread_line)
                unread.add(unread_line)
        elif piece or (text.strip() and not NUMBER_PATTERN.fullmatch(text)):
            start = start if piece else number
            if characters <= MAX_RECORD_CHARACTERS or tag == END_TAG:
                piece.append((tag, value))
            characters += len(value) + 1
        last_tag = tag
    if piece:
        yield start, piece


def parse_piece(number: int, lines: list[Line], left_out: Counter[str]) -> Record:
    if lines[0][0] != BEGIN:
        return Record(number, {}, problem=name_field("record", _("It does not begin with a line TY.")))
    if sum(len(text) + 1 for _tag, text in lines) > MAX_RECORD_CHARACTERS:
        return Record(number, {}, problem=name_field("record", describe_too_long(MAX_RECORD_CHARACTERS)))
    fields = read_tags(lines)
    if END_TAG not in fields:
        return Record(number, {}, problem=name_field("record", _("It does not end with a line ER.")))
    problem, warning = describe_kind(fields[BEGIN][0])
    used = {
        field: next((tag for tag in tags if any(fields.get(tag, ()))), tags[0]) for field, tags in FIELD_TAGS.items()
    }
    values = read_tag_values({field: fields.get(tag, [""]) for field, tag in used.items()})
    values["available"] = read_availability(values["available"], used["available"], left_out)
    repeated = (f"{used[field]} #2" for field in ("title", "year") if len(fields.get(used[field], ())) > 1)
    others = {tag for tag in fields.keys() - {BEGIN, END_TAG, *used.values()} if any(fields[tag])}
    for tag in () if problem else others | set(repeated):
        left_out[tag] += 1
    warnings = (warning,) if warning else ()
    values = {field: value for field, value in values.items() if value != ""}
    return Record(number, values, None, problem, warnings, build_record_number(values.get("id", "")))


def read_tags(lines: list[Line]) -> dict[str, list[str]]:
    """Returns the values of each tag. A line without a tag continues the previous value."""
    fields: dict[str, list[list[str]]] = {}
    # The parts of the last value are joined once, because a record may have very many lines.
    pieces: list[str] = []
    for tag, text in lines:
        if tag:
            pieces = [text]
            fields.setdefault(tag, []).append(pieces)
        elif text.strip() and pieces:
            pieces.append(text)
    return {
        tag: [unescape_characters(clean_white_space(" ".join(value))) for value in values]
        for tag, values in fields.items()
    }


def read_tag_values(found: dict[str, list[str]]) -> dict[str, Any]:
    values: dict[str, Any] = {field: texts[0] for field, texts in found.items()}
    values["isbn"] = choose_isbn(found["isbn"]) or values["isbn"]
    values["author"] = "; ".join(found["author"])
    match = YEAR_PATTERN.fullmatch(values["year"])
    values["year"] = match[1] if match else values["year"]
    return values


def write_ris(pages: Pages) -> Iterator[bytes]:
    for page in pages:
        yield "".join(map(format_book, page)).encode()


def format_book(book: ExportedBook) -> str:
    source, number = split_record_number(book.isbn)
    tag_texts = {field.ris[0]: text for field, text in iter_texts(book) if not (number and field.name == "isbn")}
    record_id = book.isbn if source else number or str(book.id)
    texts = {BEGIN: "BOOK", "ID": record_id, **tag_texts, END_TAG: ""}
    return "".join(f"{tag}  - {escape_characters(text, UNSAFE_CHARACTERS)}\r\n" for tag, text in texts.items())

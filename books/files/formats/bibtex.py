"""Reads and writes books as BibTeX, in UTF-8."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, BinaryIO

from django.utils.translation import gettext as _

from books.book.fields import BOOK_FIELDS
from books.book.isbn import build_record_number, split_record_number
from books.files.formats.encodings import find_encoding, iter_lines
from books.files.formats.record_kinds import describe_kind
from books.files.formats.records import (
    COLUMNS,
    MAX_RECORD_CHARACTERS,
    ExportedBook,
    Pages,
    Record,
    Table,
    UnreadableRecord,
    describe_too_long,
    iter_texts,
    name_field,
    read_availability,
    split_values,
)
from books.files.formats.tex import BLANKS, decode_tex, encode_tex

ENTRY_START = re.compile(r"\s*@\s*([A-Za-z]+)\s*[{(]")
# Entries that are not publications.
DIRECTIVES = ("comment", "preamble", "string")
CITATION_KEY_PATTERN = re.compile(r"book([0-9]+)")
# It matches only at the first of several spaces, so that no space is tried twice.
AUTHOR_SEPARATOR = re.compile(rf"(?<![{BLANKS}])[{BLANKS}]++and[{BLANKS}]+")
BLANK_PATTERN = re.compile(rf"[{BLANKS}]+")
NAME_PATTERN = re.compile(r"[^\s\"#%'(),={}]+")
FIELD_PATTERN = re.compile(rf"[{BLANKS},]*+({NAME_PATTERN.pattern})[{BLANKS}]*+=")
DELIMITER_PATTERN = re.compile('[{}"]')
APPROXIMATION = re.compile(r"~\s*$")
# Between the authors, and between a title and its subtitle.
SEPARATORS = {"author": "; ", "title": ": "}


def read_bibtex(stream: BinaryIO, encoding_name: str = "") -> Table:
    encoding, warning = find_encoding(stream, encoding_name)
    left_out = Counter[str]()
    records = iter_records(iter_lines(stream, encoding), left_out)
    return Table(COLUMNS, records, f"BibTeX, {encoding.description}", warning, left_out=left_out)


def iter_records(lines: Iterable[str], left_out: Counter[str]) -> Iterator[Record]:
    macros: dict[str, str] = {}
    for number, text in iter_entries(lines, left_out):
        try:
            kind, key, fields, unknown = parse_entry(text, macros)
        except UnreadableRecord as error:
            yield Record(number, {}, problem=name_field("record", str(error)))
            continue
        if kind == "string":
            macros |= fields
        elif kind not in DIRECTIVES:
            record_number = "" if CITATION_KEY_PATTERN.fullmatch(key) else build_record_number(key)
            problem, warning = describe_kind(kind)
            values, warnings, used = read_entry_values(key, fields, unknown, left_out)
            others = {name for name in fields.keys() - used if fields[name].strip()}
            left_out.update(set() if problem else others)
            yield Record(number, values, None, problem, (*filter(None, [warning]), *warnings), record_number)


def iter_entries(lines: Iterable[str], left_out: Counter[str]) -> Iterator[tuple[int, str]]:
    """Yields the line number and the text of each entry. Lines between entries are comments, and counted without `%`.

    An entry that begins before the previous one is closed ends it, so a missing brace costs only one entry.
    """
    pieces: list[str] = []
    start, depth = 0, 0
    # An entry with an opening parenthesis ends with a parenthesis.
    end = ""
    for number, line in enumerate(lines, 1):
        match = ENTRY_START.match(line)
        if match and pieces:
            yield start, "".join(pieces)
        if match:
            start, pieces, depth = number, [], 0
            end = ")" if match[0].endswith("(") else ""
        if match or pieces:
            pieces.append(line)
            # BibTeX also counts braces after a backslash.
            depth += line.count("{") - line.count("}")
            if depth <= 0 and line.rstrip(BLANKS).endswith(end):
                yield start, "".join(pieces)
                pieces = []
        elif line.strip() and not line.startswith("%"):
            left_out[_("lines outside of the entries")] += 1
    if pieces:
        yield start, "".join(pieces)


def parse_entry(text: str, macros: Mapping[str, str]) -> tuple[str, str, dict[str, str], dict[str, list[str]]]:
    """Returns the type, the key and the fields of an entry, in TeX, and the abbreviations in each field that nothing
    defines. Raises UnreadableRecord.
    """
    match = ENTRY_START.match(text)
    kind = match[1].lower() if match else ""
    if not match or kind in ("comment", "preamble"):
        return kind, "", {}, {}
    end = text.rstrip(BLANKS)
    if end[-1] not in "})" or text.count("{") != text.count("}"):
        raise UnreadableRecord(_("Its braces do not match."))
    body, key = end[match.end() : -1], ""
    if kind != "string":
        key, _comma, body = body.partition(",")
    return kind, key.strip(BLANKS), *parse_fields(body, macros)


def parse_fields(body: str, macros: Mapping[str, str]) -> tuple[dict[str, str], dict[str, list[str]]]:
    fields: dict[str, str] = {}
    unknown: dict[str, list[str]] = {}
    place = 0
    while match := FIELD_PATTERN.match(body, place):
        name = match[1].lower()
        value, place = parse_value(body, match.end(), macros, unknown.setdefault(name, []))
        # Of a field that is there twice, the first is read.
        fields.setdefault(f"{name} #2" if name in fields else name, value)
    if rest := body[place:].strip(BLANKS + ","):
        raise UnreadableRecord(_("It has no field at “%(text)s”.") % {"text": rest[:20].strip()})
    return fields, unknown


def skip_blanks(text: str, place: int) -> int:
    match = BLANK_PATTERN.match(text, place)
    return match.end() if match else place


def parse_value(body: str, place: int, macros: Mapping[str, str], unknown: list[str]) -> tuple[str, int]:
    """Returns the value, whose parts are joined by `#`, and the position after it. Appends to `unknown`."""
    parts: list[str] = []
    while True:
        place = skip_blanks(body, place)
        if body[place : place + 1] in ("{", '"'):
            end = get_value_end(body, place)
            parts.append(body[place + 1 : end])
            place = end + 1
        elif match := NAME_PATTERN.match(body, place):
            parts.append(macros.get(match[0].lower(), match[0]))
            if match[0].lower() not in macros and not match[0].isdigit():
                unknown.append(match[0])
            place = match.end()
        else:
            raise UnreadableRecord(_("It has a field without a value."))
        place = skip_blanks(body, place)
        # An abbreviation can name another one twice, and so on.
        if sum(map(len, parts)) > MAX_RECORD_CHARACTERS:
            raise UnreadableRecord(describe_too_long(MAX_RECORD_CHARACTERS))
        if body[place : place + 1] != "#":
            return "".join(parts), place
        place += 1


def get_value_end(body: str, start: int) -> int:
    """Returns the position of the brace or quote that closes the one at `start`."""
    depth, is_braced = 0, body[start] == "{"
    for match in DELIMITER_PATTERN.finditer(body, start):
        sign = match[0]
        depth += (sign == "{") - (sign == "}")
        if depth == 0 and (is_braced or (sign == '"' and match.start() > start)):
            return match.start()
    raise UnreadableRecord(_("It has a value without an end."))


def read_entry_values(
    key: str, fields: Mapping[str, str], unknown: Mapping[str, Sequence[str]], left_out: Counter[str]
) -> tuple[dict[str, Any], list[str], set[str]]:
    """Returns the values of an entry, the warnings about them, and the fields that they come from."""
    values: dict[str, Any] = {}
    warnings: list[str] = []
    used = {"subtitle"}
    for field in BOOK_FIELDS:
        name = next((name for name in field.bibtex if fields.get(name, "").strip()), "")
        if not name:
            continue
        used.add(name)
        decoded = [decode_tex(text) for text in read_parts(field.name, fields, fields[name])]
        if value := SEPARATORS.get(field.name, "").join(text for text, _unknown in decoded):
            values[field.name] = value
        for abbreviation in unknown.get(name, ()):
            sentence = _("Nothing defines the abbreviation “%(name)s”.")
            warnings.append(name_field(name, sentence % {"name": abbreviation}))
        for command in dict.fromkeys(chain.from_iterable(commands for _text, commands in decoded)):
            sentence = _("The command “%(command)s” is not known.")
            warnings.append(name_field(name, sentence % {"command": command}))
    if (available := read_availability(values.pop("available", ""), "library", left_out)) != "":
        values["available"] = available
    if match := CITATION_KEY_PATTERN.fullmatch(key):
        values["id"] = match[1]
    elif "genre" in values:
        values["genre"] = next(iter(split_values(values["genre"])), "")
    return values, warnings, used


def read_parts(field: str, fields: Mapping[str, str], text: str) -> list[str]:
    """Returns the parts of a value: the authors, a title and its subtitle."""
    if field == "author":
        return split_authors(text)
    if field == "title" and fields.get("subtitle", "").strip():
        return [text, fields["subtitle"]]
    # An approximate year of biblatex; elsewhere the sign is a space.
    return [APPROXIMATION.sub("?", text) if field == "year" else text]


def split_authors(text: str) -> list[str]:
    """Splits at each `and` outside braces."""
    authors, start, depth, counted = [], 0, 0, 0
    for match in AUTHOR_SEPARATOR.finditer(text):
        depth += text.count("{", counted, match.start()) - text.count("}", counted, match.start())
        counted = match.start()
        if depth == 0:
            authors.append(text[start : match.start()])
            start = match.end()
    last = text[start:]
    return [*authors, "et al." if authors and last.strip(BLANKS) == "others" else last]


def write_bibtex(pages: Pages) -> Iterator[bytes]:
    for page in pages:
        yield "".join(map(format_book, page)).encode()


def format_book(book: ExportedBook) -> str:
    source, number = split_record_number(book.isbn)
    is_plain = NAME_PATTERN.fullmatch(number) and not CITATION_KEY_PATTERN.fullmatch(number)
    has_key = is_plain and not source
    key = number if has_key else f"book{book.id}"
    texts = {field.bibtex[0]: encode_tex(text) for field, text in iter_texts(book)}
    if has_key:
        del texts["isbn"]
    # BibTeX would split at this word.
    texts["author"] = f"{{{texts['author']}}}" if "and" in texts["author"].lower() else texts["author"]
    fields = "".join(f"  {name} = {{{text}}},\n" for name, text in texts.items())
    return f"@book{{{key},\n{fields}}}\n"

"""Reads and writes books as BibTeX, in UTF-8."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from django.utils.translation import gettext as _

from books.book_fields import BOOK_FIELDS
from books.files.formats.encodings import find_encoding, iter_lines
from books.files.formats.records import (
    AVAILABILITIES,
    COLUMNS,
    VALUE_SEPARATORS,
    ExportedBook,
    Pages,
    Record,
    Table,
    iter_texts,
    name_field,
)
from books.isbn import build_record_number, split_record_number

ENTRY_START = re.compile(r"\s*@\s*([A-Za-z]+)\s*[{(]")
# Entries that are not publications.
DIRECTIVES = ("comment", "preamble", "string")
CITATION_KEY_PATTERN = re.compile(r"book([0-9]+)")
BLANKS = " \t\r\n"
# It matches only at the first of several spaces, so that no space is tried twice.
AUTHOR_SEPARATOR = re.compile(rf"(?<![{BLANKS}])[{BLANKS}]++and[{BLANKS}]+")
NAME_PATTERN = re.compile(r"[^\s\"#%'(),={}]+")
DELIMITER_PATTERN = re.compile('[{}"]')
SYMBOLS = {
    "textbackslash": "\\",
    "textbraceleft": "{",
    "textbraceright": "}",
    "textasciitilde": "~",
    "textasciicircum": "^",
    "ss": "ß",
    "ae": "æ",
    "AE": "Æ",
    "oe": "œ",
    "OE": "Œ",
    "o": "ø",
    "O": "Ø",
    "l": "ł",
    "L": "Ł",
    "aa": "å",
    "AA": "Å",
    "i": "ı",
    "j": "ȷ",
    "textquotesingle": "'",
    "textendash": "–",
    "textemdash": "—",
}
# Combining characters, by the character or the letter after the backslash.
ACCENTS = {
    "`": "\u0300",
    "'": "\u0301",
    "^": "\u0302",
    "~": "\u0303",
    "=": "\u0304",
    "u": "\u0306",
    ".": "\u0307",
    '"': "\u0308",
    "r": "\u030a",
    "H": "\u030b",
    "v": "\u030c",
    "d": "\u0323",
    "c": "\u0327",
    "k": "\u0328",
}
TEX_PATTERN = re.compile(
    r"""
    \\char"(?P<code>[0-9A-F]{1,6})
    | \\(?P<accent>[`'^~=."]|[urHvdck](?![A-Za-z]))[ ]*\{?\\?(?P<letter>[A-Za-z])\}?
    | \\(?P<symbol>[A-Za-z]+)[ ]*(?:\{\})?
    | \\(?P<sign>[^A-Za-z])
    | (?P<blanks>[ \t\r\n]+)
    | (?P<tie>~)
    | (?P<brace>[{}])
    """,
    re.VERBOSE,
)
ESCAPES = {sign: rf"\{sign}" for sign in "%&$#_"} | {
    SYMBOLS[name]: f"{{\\{name}}}" for name in SYMBOLS if name.startswith(("textb", "textasc"))
}
# Control characters, and spaces that TeX or another program would drop.
UNSAFE_CHARACTERS = re.compile(r"[\\{}~^%&$#_\x00-\x1f\x7f-\x9f]|(?! )\s|^ | \Z|(?<= ) ")


class InvalidEntry(Exception):
    """The message says what is wrong with an entry."""


def read_bibtex(stream: BinaryIO, encoding_name: str = "") -> Table:
    encoding, warning = find_encoding(stream, encoding_name)
    records = iter_records(iter_lines(stream, encoding))
    return Table(COLUMNS, records, f"BibTeX, {encoding.description}", warning)


def iter_records(lines: Iterable[str]) -> Iterator[Record]:
    macros: dict[str, str] = {}
    for number, text in iter_entries(lines):
        try:
            kind, key, fields = parse_entry(text, macros)
        except InvalidEntry as error:
            yield Record(number, {}, problem=name_field("record", str(error)))
            continue
        if kind == "string":
            macros |= fields
        elif kind not in DIRECTIVES:
            record_number = "" if CITATION_KEY_PATTERN.fullmatch(key) else build_record_number(key)
            yield Record(number, read_entry_values(key, fields), number=record_number)


def iter_entries(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yields the line number and the text of each entry. Text between entries is a comment.

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
    if pieces:
        yield start, "".join(pieces)


def parse_entry(text: str, macros: Mapping[str, str]) -> tuple[str, str, dict[str, str]]:
    """Returns the type, the key and the fields of an entry, in TeX. Raises InvalidEntry."""
    match = ENTRY_START.match(text)
    kind = match[1].lower() if match else ""
    if not match or kind in ("comment", "preamble"):
        return kind, "", {}
    end = text.rstrip(BLANKS)
    if end[-1] not in "})" or text.count("{") != text.count("}"):
        raise InvalidEntry(_("Its braces do not match."))
    body, key = end[match.end() : -1], ""
    if kind != "string":
        key, _comma, body = body.partition(",")
    return kind, key.strip(BLANKS), parse_fields(body, macros)


def parse_fields(body: str, macros: Mapping[str, str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    place = skip_blanks(body, 0, ",")
    while place < len(body):
        match = NAME_PATTERN.match(body, place)
        equals = skip_blanks(body, match.end()) if match else place
        if not match or body[equals : equals + 1] != "=":
            text = body[place : place + 20].strip()
            raise InvalidEntry(_("It has no field at “%(text)s”.") % {"text": text})
        value, place = parse_value(body, equals + 1, macros)
        fields.setdefault(match[0].lower(), value)
        place = skip_blanks(body, place, ",")
    return fields


def skip_blanks(text: str, place: int, others: str = "") -> int:
    while place < len(text) and text[place] in BLANKS + others:
        place += 1
    return place


def parse_value(body: str, place: int, macros: Mapping[str, str]) -> tuple[str, int]:
    """Returns the value, whose parts are joined by `#`, and the position after it."""
    parts: list[str] = []
    while True:
        place = skip_blanks(body, place)
        if body[place : place + 1] in ("{", '"'):
            end = find_entry_end(body, place)
            parts.append(body[place + 1 : end])
            place = end + 1
        elif match := NAME_PATTERN.match(body, place):
            parts.append(macros.get(match[0].lower(), match[0]))
            place = match.end()
        else:
            raise InvalidEntry(_("It has a field without a value."))
        place = skip_blanks(body, place)
        if body[place : place + 1] != "#":
            return "".join(parts), place
        place += 1


def find_entry_end(body: str, start: int) -> int:
    """Returns the position of the brace or quote that closes the one at `start`."""
    depth = 0
    for match in DELIMITER_PATTERN.finditer(body, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        is_end = body[start] == "{" or (match[0] == '"' and match.start() > start)
        if depth == 0 and is_end:
            return match.start()
    raise InvalidEntry(_("It has a value without an end."))


def read_entry_values(key: str, fields: Mapping[str, str]) -> dict[str, Any]:
    found = {field.name: next((fields[name] for name in field.bibtex if name in fields), "") for field in BOOK_FIELDS}
    values: dict[str, Any] = {field: decode_tex(text) for field, text in found.items()}
    values["author"] = "; ".join(map(decode_tex, split_authors(found["author"])))
    values["available"] = AVAILABILITIES.get(values["available"], "")
    if match := CITATION_KEY_PATTERN.fullmatch(key):
        values["id"] = match[1]
    else:
        values["genre"] = next(filter(None, map(str.strip, VALUE_SEPARATORS.split(values["genre"]))), "")
    return {field: value for field, value in values.items() if value != ""}


def split_authors(text: str) -> list[str]:
    """Splits at each `and` outside braces."""
    authors, start, depth, counted = [], 0, 0, 0
    for match in AUTHOR_SEPARATOR.finditer(text):
        depth += text.count("{", counted, match.start()) - text.count("}", counted, match.start())
        counted = match.start()
        if depth == 0:
            authors.append(text[start : match.start()])
            start = match.end()
    return [*authors, text[start:]]


def decode_tex(text: str) -> str:
    return TEX_PATTERN.sub(decode_token, text.strip(BLANKS))


def decode_token(match: "re.Match[str]") -> str:
    if match["code"]:
        code_point = int(match["code"], 16)
        return chr(code_point) if code_point < 0xD800 else match[0]
    if match["accent"]:
        return unicodedata.normalize("NFC", match["letter"] + ACCENTS[match["accent"]])
    if match["symbol"]:
        return SYMBOLS.get(match["symbol"], "")
    return match["sign"] or (" " if match["blanks"] or match["tie"] else "")


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
    texts["author"] = f"{{{texts['author']}}}" if "and" in texts["author"] else texts["author"]
    fields = "".join(f"  {name} = {{{text}}},\n" for name, text in texts.items())
    return f"@book{{{key},\n{fields}}}\n"


def encode_tex(text: str) -> str:
    return UNSAFE_CHARACTERS.sub(encode_character, text)


def encode_character(match: "re.Match[str]") -> str:
    return ESCAPES.get(match[0]) or f'{{\\char"{ord(match[0]):X}}}'

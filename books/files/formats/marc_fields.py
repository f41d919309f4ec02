"""Converts MARC 21 records to books, and books to records (MARC 21, Bibliographic Data).

Fields that we write are exact: the leader says that they contain no ISBD punctuation.
"""

import re
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from pymarc import Field, Indicators, Record, Subfield

from books.book_fields import BOOK_FIELDS
from books.files.formats.records import AVAILABILITIES, SURE_YEAR, ExportedBook, UnreadableFile, iter_texts, name_field
from books.files.formats.references import AMBIGUOUS, escape_characters, unescape_characters
from books.isbn import build_record_number, find_isbn, normalize_isbn, split_record_number

# Leader/18: without ISBD punctuation.
EXACT_FORMS = "cn"
# Characters that a subfield cannot contain, and those that XML cannot contain or changes.
UNSAFE_CHARACTERS = re.compile(f"[\x00-\x1f\x7f\ufffe\uffff]|{AMBIGUOUS}")
PUNCTUATION = ("/", ":", ";", ",", "=")
# ISBD puts a space before a colon and a semicolon; others do not.
SPACE_BEFORE_MARK = re.compile(r"\s+(?=[:;]\s)")
# A full stop that belongs to the text: after an initial, and several dots.
OWN_STOP = re.compile(r"[\s.][A-Z]\.|\.\.")
LONGEST_STOP = 3
YEAR_PATTERN = re.compile(r"(?<![0-9])[0-9]{4}(?![0-9])")
INTEGER_PATTERN = re.compile(r"-?[0-9]{1,10}")
QUALIFIER_PUNCTUATION = ":;"
# The date on which the record was created, and the type of the publication date.
UNIMARC_FIELD_100 = re.compile(r"[0-9]{8}[a-z]")
# Leader/06 of records that describe no publication (MARC 21, Authority, Holdings, Classification and Community Data).
RECORD_KINDS = {
    "z": gettext_noop("authority records"),
    "w": gettext_noop("classification records"),
    "q": gettext_noop("community information"),
    **dict.fromkeys("uvxy", gettext_noop("holdings")),
}
TITLE_CODES = ("a", "b", "n", "p")


def describe_other_kind(record: Record, number: int) -> str:
    """Returns the error for a record that is not about a book, or in UNIMARC, empty for one in MARC 21, which must have
    field 245 and has no field 200. Raises UnreadableFile for the first record of a file.
    """
    if kind := RECORD_KINDS.get(record.leader[6]):
        if number == 1:
            raise UnreadableFile(
                _("The file has %(kind)s, not books. Choose bibliographic records instead.") % {"kind": _(kind)}
            )
        return name_field("record", _("It is one of %(kind)s, not a book.") % {"kind": _(kind)})
    fixed_text = find_text(record, ("100",), "a")
    if record.get_fields("245") or not (record.get_fields("200") or UNIMARC_FIELD_100.match(fixed_text)):
        return ""
    advice = _("Where it comes from, choose MARC 21, CSV or RIS instead.")
    if number == 1:
        raise UnreadableFile(" ".join([_("The file is in UNIMARC, which is not MARC 21."), advice]))
    return name_field("record", " ".join([_("It is in UNIMARC, which is not MARC 21."), advice]))


def read_values(record: Record) -> dict[str, Any]:
    is_exact = record.leader[18] in EXACT_FORMS
    clean = unescape_characters if is_exact else clean_text
    values: dict[str, Any] = {
        "id": find_data(record, "001"),
        "title": " ".join(clean(text) for text in list_titles(record, is_exact)),
        "author": clean(find_text(record, ("100", "110", "111", "700", "710", "720"), "a")),
        "year": find_year(record),
        "isbn": choose_isbn(map(unescape_characters, list_texts(record, ("020",), "a")), is_exact),
        "genre": clean(find_text(record, ("655",), "a") or find_text(record, ("650",), "va")),
        "available": AVAILABILITIES.get(find_text(record, ("876",), "j"), ""),
    }
    for book_field in BOOK_FIELDS:
        if book_field.name not in values:
            tag, _indicators, code = book_field.marc
            values[book_field.name] = clean(find_text(record, (tag,), code))
    return {name: value for name, value in values.items() if value != ""}


def read_record_number(record: Record) -> str:
    """Returns the control number with its source."""
    return build_record_number(find_data(record, "001"), find_data(record, "003"))


def find_data(record: Record, tag: str) -> str:
    """Returns the content of a control field."""
    return next((field.data or "" for field in record.get_fields(tag)), "")


def list_isbn13s(record: Record) -> list[str]:
    """Returns the valid ISBNs of the record as 13 digits."""
    texts = map(cut_qualifier, map(unescape_characters, list_texts(record, ("020",), "a")))
    return list(filter(None, map(normalize_isbn, texts)))


def list_texts(record: Record, tags: Iterable[str], codes: str) -> Iterator[str]:
    """Yields the texts of the subfields, tag by tag; with several codes, code by code."""
    for tag in tags:
        for field in record.get_fields(tag):
            for code in codes:
                yield from field.get_subfields(code)


def find_text(record: Record, tags: Iterable[str], codes: str) -> str:
    return next((text for text in list_texts(record, tags, codes) if text), "")


def list_titles(record: Record, is_exact: bool) -> Iterator[str]:
    """Yields title, remainder and parts. The punctuation between the last ones does not change."""
    for field in record.get_fields("245")[:1]:
        texts = [subfield.value for subfield in field.subfields if subfield.code in TITLE_CODES]
        yield from texts if is_exact else [" ".join(text.strip() for text in texts)]


def clean_text(text: str) -> str:
    """Removes the punctuation that introduces the next subfield, and the spaces before it (ISBD, A.3)."""
    text = SPACE_BEFORE_MARK.sub("", unescape_characters(text).rstrip())
    ends_sentence = text.endswith(".") and not OWN_STOP.search(text[-LONGEST_STOP:])
    return text[:-1].strip() if ends_sentence or text.endswith(PUNCTUATION) else text.strip()


def find_year(record: Record) -> str:
    """Returns the year of publication: the first certain one, else the year of field 008, else the first text with a
    year.

    If a text contains other years, field 008 is ignored.
    """
    texts = [text.strip() for text in list_texts(record, ("264", "260"), "c")]
    for text in texts:
        if INTEGER_PATTERN.fullmatch(text):
            return text
        if match := SURE_YEAR.fullmatch(text):
            return match["year"]
    coded, dated = find_coded_year(record), list(filter(YEAR_PATTERN.search, texts))
    return coded if coded and (not dated or coded in dated[0]) else next(iter([*dated, *texts]), "")


def find_coded_year(record: Record) -> str:
    fixed_field = find_data(record, "008")
    return fixed_field[7:11] if YEAR_PATTERN.fullmatch(fixed_field[7:11]) else ""


def choose_isbn(texts: Iterable[str], is_exact: bool) -> str:
    """Returns the first text that contains an ISBN, else the first text."""
    records = [text if is_exact else cut_qualifier(text) for text in texts]
    return next(filter(find_isbn, records), records[0] if records else "")


def cut_qualifier(text: str) -> str:
    """Returns the number before a parenthesis or a colon."""
    start = text.find("(")
    if start >= 0 and ")" in text[start:]:
        while start and (text[start - 1] in QUALIFIER_PUNCTUATION or text[start - 1].isspace()):
            start -= 1
        text = text[:start]
    return text.partition(":")[0].strip()


def build_record(book: ExportedBook) -> Record:
    record = Record(leader="00000nam a22000003c 4500")
    source, number = split_record_number(book.isbn)
    control_fields = {"001": number or str(book.id), "003": source, "005": format_change_time(book)}
    control_fields["008"] = format_fixed_field(book)
    record.add_field(*(Field(tag, data=data) for tag, data in control_fields.items() if data))
    texts = [(book_field, text) for book_field, text in iter_texts(book) if not (number and book_field.name == "isbn")]
    fields = [build_field(*book_field.marc, text) for book_field, text in texts]
    record.add_field(*sorted(fields, key=attrgetter("tag")))
    return record


def build_field(tag: str, indicators: str, code: str, text: str) -> Field:
    return Field(tag, Indicators(*indicators), [Subfield(code, escape_characters(text, UNSAFE_CHARACTERS))])


def format_change_time(book: ExportedBook) -> str:
    """Returns the time of the latest change for field 005: `yyyymmddhhmmss.f`."""
    digits = re.sub("[^0-9]", "", book.updated_at)
    return f"{digits[:14]}.{digits[14:15]}"


def format_fixed_field(book: ExportedBook) -> str:
    """Returns field 008 of a book: the date of entry, and the year if it has four digits. All else is marked as
    unknown.
    """
    entered = re.sub("[^0-9]", "", book.created_at)[2:8]
    year = f"s{book.year}    " if 1000 <= book.year <= 9999 else "nuuuuuuuu"
    return f"{entered}{year}xx {'|' * 17}und||"

"""Parses ISBNs in any common notation (ISO 2108), and the numbers of records without one."""

import re
from functools import lru_cache

from stdnum import ean
from stdnum import isbn as isbns
from stdnum.util import clean

# Soft hyphens, zero-width characters and direction marks.
INVISIBLE_CHARACTERS = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
# Text around the number: "ISBN" before it, the binding in parentheses after it.
SURROUNDING_TEXT = re.compile(r"^\s*(?:urn:)?isbn(?:[-\s]?1[03](?![0-9]))?\s*:?\s*|\(.*?\)", re.IGNORECASE)
# stdnum accepts nine digits as an ISBN-10, and fails on a line break before the last character.
ISBN_PATTERN = re.compile(r"[0-9]{9}[0-9X]|[0-9]{13}")
# 979-0 numbers are for printed music (ISO 10957).
ISBN13_PATTERN = re.compile(r"(?:978[0-9]|979[1-9])[0-9]{9}")
# Longer texts are not parsed as an ISBN or as a list of ISBNs.
MAX_ISBN_TEXT, MAX_LIST_TEXT = 64, 200
MIN_DIGITS = 10
# The number of a record, after its source (MARC 21, 003 and 001) or `no.`. A catalogue's number of ten digits often has
# the check digit of an ISBN.
RECORD_NUMBER = re.compile(
    r"(?:\((?P<source>[A-Za-z][A-Za-z0-9:/-]{0,31})\)|no\. )(?P<number>[^\s()](?:[^()]*[^\s()])?)"
)
# Numbers that people type where a form demands one: one digit over and over, or the digits in a row.
PLACEHOLDER = re.compile(r"(?:97[89])?(?:([0-9])\1{7,}[0-9X]|0123456789|123456789[0-9X]|012345678[0-9])")
# Separators between ISBNs, and text around one: LibraryThing writes `[0261102214]`, Goodreads `="0261102214"`.
LIST_SEPARATORS = re.compile(r"[,;|/\n]+")
SEPARATORS = re.compile(r"[\s,;|/\[\](){}\"=]+")


def normalize_isbn(text: str) -> str | None:
    """Returns the 13 digits of a valid ISBN-10 or ISBN-13, or None."""
    return None if len(text) > MAX_ISBN_TEXT else normalize_short(text)


# Cached because a record of a file needs it several times.
@lru_cache(maxsize=4096)
def normalize_short(text: str) -> str | None:
    number = text
    if not ISBN13_PATTERN.fullmatch(text):
        if is_record_number(text):
            return None
        number = SURROUNDING_TEXT.sub("", INVISIBLE_CHARACTERS.sub("", text)).strip()
        number = number if ISBN13_PATTERN.fullmatch(number) else isbns.compact(number)
    # stdnum takes five times as long.
    if ISBN13_PATTERN.fullmatch(number):
        return number if ean.calc_check_digit(number[:12]) == number[12] else None
    return to_isbn13(number) if ISBN_PATTERN.fullmatch(number) and isbns.is_valid(number) else None


def is_placeholder(text: str) -> bool:
    return PLACEHOLDER.fullmatch(compact_number(text)) is not None


def find_isbn(text: str) -> str:
    """Returns the first valid ISBN in a text, in the text's notation; empty if there is none."""
    if len(text) > MAX_LIST_TEXT or is_record_number(text):
        return ""
    for piece in (*LIST_SEPARATORS.split(text), *SEPARATORS.split(text)):
        isbn = SURROUNDING_TEXT.sub("", piece).strip(' []="')
        if len(isbn) >= MIN_DIGITS and normalize_isbn(isbn):
            return isbn
    return ""


def is_record_number(text: str) -> bool:
    return bool(text) and text[0] in "(n" and RECORD_NUMBER.fullmatch(text) is not None and text.isprintable()


def build_record_number(number: str, source: str = "") -> str:
    """Returns the number of a record as books without an ISBN have it in its place; empty if there is none."""
    text = number.strip()
    with_source = f"({source.strip()}){text}"
    if source and is_record_number(with_source):
        return with_source
    return text if not text or is_record_number(text) else f"no. {text}"


def split_record_number(text: str) -> tuple[str, str]:
    """Returns the source, which may be empty, and the number; both are empty for another text."""
    match = RECORD_NUMBER.fullmatch(text) if is_record_number(text) else None
    return (match["source"] or "", match["number"]) if match else ("", "")


def compact_number(text: str) -> str:
    """Returns the text without separators, invisible characters and text around an ISBN."""
    if text.isascii() and text.isdigit():
        return text
    number: str = clean(SURROUNDING_TEXT.sub("", INVISIBLE_CHARACTERS.sub("", text)), " -")
    return number.strip().upper()


def hyphenate_isbn(text: str) -> str:
    """Returns a valid ISBN with hyphens, and any other text unchanged."""
    if normalize_isbn(text) is None:
        return text
    parts = isbns.split(isbns.compact(compact_number(text)))
    # The list of the ISBN agency does not have this range yet.
    has_all_parts = all(parts[1:])
    return "-".join(filter(None, parts)) if has_all_parts else compact_number(text)


def to_isbn13(number: str) -> str | None:
    isbn13: str = isbns.to_isbn13(number)
    return isbn13 if ISBN13_PATTERN.fullmatch(isbn13) else None


def to_isbn10(isbn13: str) -> str:
    """Returns the ISBN-10. An ISBN that begins with 979 has none and is returned unchanged."""
    return str(isbns.to_isbn10(isbn13)) if isbn13.startswith("978") else isbn13

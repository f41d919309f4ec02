"""Parses typed or scanned text: an ISBN, a misread ISBN, another code, an id, or words.

It looks only at the text and reads no database.
"""

import re
import unicodedata
from enum import Enum
from typing import NamedTuple

from django.utils.translation import gettext_noop
from stdnum import ean

from books.book.isbn import INVISIBLE_CHARACTERS, MAX_ISBN_TEXT, compact_number, normalize_isbn
from library_site.db.integers import parse_integer

MAX_SCAN_LENGTH = 500
CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f]+")
# The prefixes of books, of music (979-0) and of periodicals (977), then two or five digits of an add-on symbol: the
# issue of a periodical, or the price of a book (GS1 General Specifications, 5.2.2).
CODE_WITH_ADD_ON = re.compile(r"(97[789][0-9]{10})[+ ]?(?:[0-9]{2}|[0-9]{5})")
PERIODICAL = re.compile(r"977[0-9]{10}")
MUSIC = re.compile(r"9790[0-9]{9}")
# Numbers that can only be ISBNs: ten characters, or 13 digits with one or two missing or extra.
MISREAD = re.compile(r"[0-9]{9}[0-9X]|97[789][0-9]{8,11}")
MARKED_AS_ISBN = re.compile(r"\s*(?:urn:)?isbn", re.IGNORECASE)
NUMBER = re.compile(r"[0-9]{7,}X?")
ID = re.compile(r"#\s*([0-9]+)")
# The characters that the keys 0 to 9 type if the computer has another keyboard layout than the scanner.
LAYOUTS = {
    gettext_noop("French"): "à&é\"'(-è_ç",
    gettext_noop("Belgian"): "à&é\"'(§è!ç",
    gettext_noop("Czech"): "é+ěščřžýáí",
    gettext_noop("Slovak"): "é+ľščťžýáí",
    gettext_noop("American with Shift"): ")!@#$%^&*(",
    gettext_noop("British with Shift"): ')!"£$%^&*(',
    gettext_noop("German with Shift"): '=!"§$%&/()',
}
TRANSLATIONS = {name: str.maketrans(keys, "0123456789") for name, keys in LAYOUTS.items()}


class ScanKind(Enum):
    NOTHING = "nothing"
    ISBN = "ISBN"
    MISREAD = "misread ISBN"
    PERIODICAL = "periodical"
    MUSIC = "printed music"
    ID = "id"
    WORDS = "words"


class Scan(NamedTuple):
    """The meaning of a text. `isbn13` belongs to an ISBN, `number` to an id. `is_marked` is set if a # preceded it.

    `layout` is the keyboard layout that turned the digits into other characters.
    """

    kind: ScanKind
    text: str
    isbn13: str = ""
    number: int = 0
    is_marked: bool = False
    layout: str = ""


def read_scan(text: str) -> Scan:
    text = CONTROL_CHARACTERS.sub(" ", INVISIBLE_CHARACTERS.sub("", text[:MAX_SCAN_LENGTH])).strip()
    if not text:
        return Scan(ScanKind.NOTHING, "")
    return read_code(text) or read_other_layout(text) or read_id(text) or Scan(ScanKind.WORDS, text)


def read_code(text: str) -> Scan | None:
    """Parses ISBNs and codes of periodicals and music, including misread ones."""
    if len(text) > MAX_ISBN_TEXT:
        return None
    # NFKC turns full-width digits into plain digits.
    number = remove_add_on(compact_number(unicodedata.normalize("NFKC", text)))
    isbn13 = normalize_isbn(number)
    if isbn13:
        return Scan(ScanKind.ISBN, text, isbn13)
    if PERIODICAL.fullmatch(number) and ean.is_valid(number):
        return Scan(ScanKind.PERIODICAL, text)
    if MUSIC.fullmatch(number) and ean.is_valid(number):
        return Scan(ScanKind.MUSIC, text)
    return Scan(ScanKind.MISREAD, text) if is_misread(text, number) else None


def remove_add_on(number: str) -> str:
    match = CODE_WITH_ADD_ON.fullmatch(number)
    return match[1] if match else number


def is_misread(text: str, number: str) -> bool:
    if MISREAD.fullmatch(number):
        return True
    return bool(MARKED_AS_ISBN.match(text) and NUMBER.fullmatch(number))


def read_other_layout(text: str) -> Scan | None:
    """Parses a code whose digits arrived as other characters. A misread code is accepted only if it looks like a
    book's.
    """
    composed = unicodedata.normalize("NFC", text).replace(" ", "")
    scans = [(name, read_translated(composed, name)) for name in LAYOUTS]
    readable = [scan._replace(layout=name) for name, scan in scans if scan]
    return next((scan for scan in readable if scan.kind is not ScanKind.MISREAD), readable[0] if readable else None)


def read_translated(text: str, layout: str) -> Scan | None:
    number = text.translate(TRANSLATIONS[layout])
    # Ten equal characters are not a code, although the check digit is right.
    if text == number or not NUMBER.fullmatch(number) or len(set(number)) == 1:
        return None
    scan = read_code(number)
    is_doubtful = scan and scan.kind is ScanKind.MISREAD and not number.startswith("97")
    return None if is_doubtful else scan


def read_id(text: str) -> Scan | None:
    marked = ID.fullmatch(text)
    number = parse_integer(marked[1] if marked else text)
    # A code with leading zeros is of something else: a label, a card or a product.
    if number is None or number < 0 or (not marked and text != str(number)):
        return None
    return Scan(ScanKind.ID, text, number=number, is_marked=bool(marked))

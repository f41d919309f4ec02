"""Reads what was typed or scanned: an ISBN, a misread one, the code of something else, an id, or words.

Only the text is looked at. What is done with it is for others to say.
"""

import re
import unicodedata
from enum import Enum
from typing import NamedTuple

from django.utils.translation import gettext_noop
from stdnum import ean

from books.isbn import INVISIBLE_CHARACTERS, MAX_ISBN_TEXT, compact_number, normalize_isbn
from library_site.db.integers import parse_integer

MAX_SCAN_LENGTH = 500
CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f]+")
# The prefixes of books, of music (979-0) and of periodicals (977), then two or five digits of an add-on symbol: the
# issue of a periodical, or the price of a book (GS1 General Specifications, 5.2.2).
CODE_WITH_ADD_ON = re.compile(r"(97[789][0-9]{10})[+ ]?(?:[0-9]{2}|[0-9]{5})")
PERIODICAL = re.compile(r"977[0-9]{10}")
MUSIC = re.compile(r"9790[0-9]{9}")
# Numbers that can only be meant as ISBNs: one of ten characters, or one of 13 that lost or gained a digit or two.
MISREAD = re.compile(r"[0-9]{9}[0-9X]|97[789][0-9]{8,11}")
MARKED_AS_ISBN = re.compile(r"\s*(?:urn:)?isbn", re.IGNORECASE)
NUMBER = re.compile(r"[0-9]{7,}X?")
ID = re.compile(r"#\s*([0-9]+)")
# What the keys of the digits 0 to 9 type on other keyboards than the one that a scanner is set to.
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
    """What a text means. `isbn13` is that of an ISBN, `number` that of an id; `is_marked` if a # stood before it.

    `layout` is the keyboard layout through which the digits were typed as other characters.
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
    """Reads ISBNs and the codes of periodicals and music, also misread ones."""
    if len(text) > MAX_ISBN_TEXT:
        return None
    # NFKC makes plain digits of full-width ones.
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
    """Reads a code whose digits were typed as other characters. A misread one must look like a book's."""
    composed = unicodedata.normalize("NFC", text).replace(" ", "")
    scans = [(name, read_translated(composed, name)) for name in LAYOUTS]
    readable = [scan._replace(layout=name) for name, scan in scans if scan]
    return next((scan for scan in readable if scan.kind is not ScanKind.MISREAD), readable[0] if readable else None)


def read_translated(text: str, layout: str) -> Scan | None:
    number = text.translate(TRANSLATIONS[layout])
    # The same sign ten times is no code, though its check digit is right.
    if text == number or not NUMBER.fullmatch(number) or len(set(number)) == 1:
        return None
    scan = read_code(number)
    is_doubtful = scan and scan.kind is ScanKind.MISREAD and not number.startswith("97")
    return None if is_doubtful else scan


def read_id(text: str) -> Scan | None:
    marked = ID.fullmatch(text)
    number = parse_integer(marked[1] if marked else text)
    if number is None or number < 0:
        return None
    return Scan(ScanKind.ID, text, number=number, is_marked=bool(marked))

"""Detects the encoding of a text file, reads its lines with little memory, and escapes characters."""

import codecs
import re
from collections.abc import Iterator
from contextlib import suppress
from io import TextIOWrapper
from typing import BinaryIO, NamedTuple

from django.utils.translation import gettext as _

from books.files.formats.records import READ_BYTES, UnreadableFile
from library_site.db.texts import make_storable

MARK = "\ufeff"
# Characters that may occur between records of MARC 21: a mark in UTF-8, too.
MARC_PADDING = b"\r\n \0\x1a\xef\xbb\xbf"
# In a Latin text in UTF-16 every second byte is NUL.
UTF_16_SHARE = 0.3


class Encoding(NamedTuple):
    """`codec` is Python's name; `mark` is the byte order mark at the beginning of the file."""

    name: str
    codec: str
    mark: bytes = b""

    @property
    def description(self) -> str:
        return _("%(encoding)s with a byte order mark") % {"encoding": self.name} if self.mark else self.name


UTF_8 = Encoding("UTF-8", "utf-8")
UTF_16_LE, UTF_16_BE = Encoding("UTF-16", "utf-16-le"), Encoding("UTF-16", "utf-16-be")
BYTE_ORDER_MARKS = {codecs.BOM_UTF8: UTF_8, codecs.BOM_UTF16_LE: UTF_16_LE, codecs.BOM_UTF16_BE: UTF_16_BE}
# pymarc's name of the encoding of old records, which Python does not know.
MARC_8 = Encoding("MARC-8", "iso8859-1")
# Latin-1 is read as Windows-1252, as in browsers (WHATWG, Encoding, 4.2). The commonest come first.
LEGACY_ENCODINGS = {
    **{f"windows-{page}": Encoding(f"Windows-{page}", f"cp{page}") for page in (1252, 1250, 1251, *range(1253, 1258))},
    "iso-8859-2": Encoding("ISO 8859-2 (Latin-2)", "iso8859_2"),
    "gb18030": Encoding("GB 18030 (GBK)", "gb18030"),
    "shift_jis": Encoding("Shift JIS", "cp932"),
    "big5": Encoding("Big5", "cp950"),
    "euc-kr": Encoding("EUC-KR", "cp949"),
    "koi8-r": Encoding("KOI8-R", "koi8_r"),
    "mac-roman": Encoding("Mac Roman", "mac_roman"),
    **{f"cp{page}": Encoding(f"CP{page} (DOS)", f"cp{page}") for page in (437, 850, 866)},
}
# The encodings that users can choose.
ENCODINGS = {"utf-8": UTF_8, "utf-16": UTF_16_LE, "marc-8": MARC_8, **LEGACY_ENCODINGS}
TEXT_ENCODINGS, MARC_ENCODINGS = ("utf-8", "utf-16", *LEGACY_ENCODINGS), ("utf-8", "marc-8", "windows-1252")

# To propose an encoding, in the first bytes: words beyond ASCII, the others look alike in all encodings.
WORDS = re.compile(rb'[^\s,;"]*[\x80-\xff][^\s,;"]*')
MAX_WORDS, MAX_PROPOSALS = 1_000, 3
# Nearly all bytes are letters in it, so it would be proposed for texts in others.
NEVER_PROPOSED = "windows-1256"
# Measures of disorder that differ by less are equal.
SAME_DISORDER = 0.02
MAX_SEARCHED_BYTES = 2**20
# References such as `&#x1D;` for characters that a format or an encoding cannot contain (MARC 21, Character Sets,
# lossless conversion).
REFERENCE_PATTERN = re.compile("&#x([0-9A-Fa-f]{1,6});")
# Parts of a pattern of unsafe characters: text that would itself be read as a reference, and white space of which a
# reader leaves one space between two words.
AMBIGUOUS, UNSAFE_BLANKS = r"&(?=#x[0-9A-Fa-f]{1,6};)", r"^\s|\s\Z|(?<=\s)\s|[^\S ]|\u200b|\ufeff"


def find_encoding(stream: BinaryIO, name: str = "") -> tuple[Encoding, str]:
    """Reads the whole file. Returns its encoding, and a warning if a line is not in it.

    `name` is a key of ENCODINGS, or empty to detect the encoding: a file without a byte order mark and without NULs is
    treated as UTF-8.
    """
    stream.seek(0)
    head = stream.read(READ_BYTES)
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return encoding._replace(mark=mark), ""
    if name and name != "utf-8":
        return ENCODINGS[name], ""
    for start, encoding in ((1, UTF_16_LE), (0, UTF_16_BE)):
        if head[start::2].count(0) > UTF_16_SHARE * len(head):
            return encoding, ""
    sentence = _("Line %(line)s is not %(encoding)s.")
    line, _is_first = find_invalid_line(stream)
    return UTF_8, sentence % {"line": line, "encoding": UTF_8.name} if line else ""


def find_invalid_line(stream: BinaryIO) -> tuple[int, bool]:
    """Returns the number of the first line that is not UTF-8, or 0; and whether what is wrong there is the first
    non-ASCII character of the file. In a damaged UTF-8 file it usually is not.
    """
    decoder, line, is_ascii = codecs.getincrementaldecoder("utf-8")(), 1, True
    stream.seek(0)
    while True:
        chunk = stream.read(READ_BYTES)
        try:
            is_ascii &= decoder.decode(chunk, final=not chunk).isascii()
        except UnicodeDecodeError as error:
            before = error.object[: error.start]
            return line + before.count(b"\n"), is_ascii and before.isascii()
        if not chunk:
            return 0, False
        line += chunk.count(b"\n")


def iter_lines(stream: BinaryIO, encoding: Encoding) -> Iterator[str]:
    """Yields the lines with their line ends. Undecodable bytes become lone surrogates. Raises UnreadableFile."""
    stream.seek(len(encoding.mark))
    text = TextIOWrapper(stream, encoding.codec, "surrogateescape", newline="")
    number = 0
    try:
        for line in text:
            number += 1
            # Files that were joined have marks between them.
            yield line.lstrip(MARK) if line.startswith(MARK) else line
    except UnicodeDecodeError as error:
        place = {"line": number + 1, "encoding": encoding.name}
        raise UnreadableFile(_("Line %(line)s is not %(encoding)s.") % place) from error
    finally:
        # Otherwise the wrapper would close the stream. It may already be closed.
        with suppress(ValueError):
            text.detach()


def show_undecodable(text: str) -> str:
    """Returns the text with a replacement character for each byte that could not be decoded."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def show_storable(text: str) -> str:
    """Returns the text in a form that a database can store."""
    return make_storable(show_undecodable(text))


def propose_encodings(stream: BinaryIO) -> list[str]:
    """Returns keys of ENCODINGS, the likeliest first; none for a text that is UTF-8 but for a damage."""
    _line, is_other = find_invalid_line(stream)
    if not is_other:
        return []
    # It takes a tenth of a second to import.
    from charset_normalizer import from_bytes

    stream.seek(0)
    words = b" ".join(WORDS.findall(stream.read(MAX_SEARCHED_BYTES))[:MAX_WORDS])
    names = {ENCODINGS[name].codec: name for name in LEGACY_ENCODINGS if name != NEVER_PROPOSED}
    codecs = [*names]
    matches = from_bytes(words, cp_isolation=codecs) if words else ()
    ranks = sorted(
        (match.chaos, -match.coherence, codecs.index(codec))
        for match in matches
        # Those that read the same texts in it count once.
        for codec in match.could_be_from_charset
    )
    likely = [codecs[place] for disorder, _words, place in ranks if disorder - ranks[0][0] <= SAME_DISORDER]
    return [names[codec] for codec in likely[:MAX_PROPOSALS]]


def escape_characters(text: str, unsafe: "re.Pattern[str]") -> str:
    return unsafe.sub(lambda match: f"&#x{ord(match[0]):X};", text)


def unescape_characters(text: str) -> str:
    return REFERENCE_PATTERN.sub(unescape_reference, text) if "&#x" in text else text


def unescape_reference(match: "re.Match[str]") -> str:
    code_point = int(match[1], 16)
    is_character = code_point < 0x110000 and not 0xD800 <= code_point < 0xE000
    return chr(code_point) if is_character else match[0]

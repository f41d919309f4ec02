"""The kinds of files of books that are not read. To name another one, add a row."""

import re
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

SAVE_REFERENCES = gettext_noop("Save it as RIS or BibTeX.")
SAVE_RECORDS = gettext_noop("Save it as MARC 21 or MARCXML.")
SAVE_EITHER = gettext_noop("Save it as MARCXML or RIS.")
SAVE_TABLE = gettext_noop("Save it as CSV, MARC 21 or RIS.")
UNPACK = gettext_noop("Unpack it, and choose the file in it.")
NAME_COLUMNS = gettext_noop(
    "Enter each at “Add book”, which looks it up, or give each its title, author, year and genre."
)
# The beginning of an XML file with an element, whose name follows.
ELEMENT = r"<(?:.*?<)?(?:\w+:)?"
# As Biblioscape and Copac write one.
TAG = r"(?:--)?[A-Z][A-Z0-9]{1,2}(?:--| {0,2}- )"
ISBN_LINE = r"(?:isbn:? ?)?[0-9][0-9 -]{8,15}[0-9x][ \t\r]*(?:\n\s*|\Z)"

# Control characters that no text has, at its beginning or near bytes that are not UTF-8.
CONTROL = "[\x01-\x08\x0e-\x1a]"
BINARY = rf"{CONTROL}|SQLite format|(?=.{{,100}}\ufffd).{{,100}}?{CONTROL}"


class OtherKind(NamedTuple):
    """`beginning` is a pattern, in which case does not matter. Where none fits, the extension of the name decides."""

    name: str
    beginning: str
    advice: str
    extensions: tuple[str, ...] = ()

    def describe(self) -> str:
        return " ".join(
            [_("This is %(kind)s, which the library cannot read.") % {"kind": _(self.name)}, _(self.advice)]
        )


# The first that fits counts.
OTHER_KINDS = (
    OtherKind("EndNote", r"%0 |%[A-Z] [^\n]*\n%[A-Z0-9] ", SAVE_REFERENCES, (".enw",)),
    OtherKind("PDF", "%PDF-", SAVE_TABLE, (".pdf",)),
    OtherKind("gzip", "\ufffd\x08", UNPACK, (".gz", ".tgz")),
    OtherKind(gettext_noop("a picture"), "\ufffdPNG|GIF8|\ufffd{3,4}.{2,3}(?:JFIF|Exif)", SAVE_TABLE, (".png", ".jpg")),
    OtherKind(gettext_noop("a binary file"), BINARY, SAVE_TABLE),
    OtherKind("PubMed", rf"PMID ?-|{ELEMENT}(?:Pubmed|Medline)", SAVE_REFERENCES, (".nbib",)),
    OtherKind("RefWorks", r"RT [A-Z][^\n]*\n+[A-Z][A-Z0-9] ", SAVE_REFERENCES),
    OtherKind("Web of Science", r"FN [^\n]*\n+VR |PT [A-Z]+\s*\n[A-Z][A-Z0-9] ", SAVE_REFERENCES, (".isi", ".ciw")),
    OtherKind("Ovid", r"<[0-9]+[.>]", SAVE_REFERENCES),
    OtherKind(gettext_noop("a list of references without the lines TY of RIS"),
              rf"{TAG}[^\n]*\n(?:[ \t]+[^\n]*\n)*{TAG}", SAVE_REFERENCES),
    OtherKind(gettext_noop("MARC as text (MarcEdit)"), "=LDR +", SAVE_RECORDS, (".mrk",)),
    OtherKind(gettext_noop("MARC as JSON"), r'[\[{].*?"leader"\s*:\s*"[0-9 ]{5}', SAVE_RECORDS),
    OtherKind("CSL JSON", r'\[\s*\{.*?"(?:date-parts|family)"\s*:', SAVE_REFERENCES),
    OtherKind(gettext_noop("a list of ISBNs"), rf"(?:{ISBN_LINE}){{3}}|(?:{ISBN_LINE}){{1,2}}\Z", NAME_COLUMNS),
    OtherKind("EndNote XML", rf"{ELEMENT}(?:source-app name=.EndNote|xml>\s*<records>)", SAVE_REFERENCES),
    OtherKind("MODS", rf"{ELEMENT}mods(?:Collection)?[\s/>]", SAVE_EITHER, (".mods",)),
    OtherKind("BibTeXML", "<.*?bibtexml", SAVE_REFERENCES),
    OtherKind("ONIX", f"{ELEMENT}ONIXMessage", SAVE_EITHER),
    OtherKind(gettext_noop("a list of sources of Word"), rf"{ELEMENT}Sources[\s/>]", SAVE_REFERENCES),
    OtherKind(gettext_noop("a web page (HTML)"), rf"<!doctype html|{ELEMENT}html[\s/>]", SAVE_TABLE, (".html", ".htm")),
    OtherKind(gettext_noop("another kind of XML"), "<[?!a-z]", SAVE_EITHER),
)  # fmt: skip
PATTERNS = [(kind, re.compile(kind.beginning, re.DOTALL | re.IGNORECASE)) for kind in OTHER_KINDS]


def find_other_kind(text: str, extension: str) -> OtherKind | None:
    """Returns the kind of a file that begins with this text."""
    found = (kind for kind, pattern in PATTERNS if pattern.match(text))
    named = (kind for kind in OTHER_KINDS if extension in kind.extensions)
    return next(found, None) or next(named, None)

"""The kinds of records that are books, and those that are certainly none, by their codes in RIS, BibTeX and Zotero, and
in the columns of tables.
"""

import re

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from books.files.formats.records import MAX_SHOWN_NAME, name_field

BOOKS = frozenset(
    "book ebook edbook booklet manual proceedings collection reference mvbook mvcollection mvreference mvproceedings"
    " thesis thes phdthesis mastersthesis report rprt techreport manscpt manuscript pamp govdoc clswk ctlg".split()
)
# The words of a column that names the form of a book.
FORMS = frozenset(
    "bk bks books buch bücher print printed paper hardcover hardback hc pb paperback softcover softback gebunden"
    " broschiert taschenbuch kindle epub pdf digital fic nfic ref text monograph monographs monographie livre livres"
    " libro broché".split()
)
# The words of what is no book.
OTHER_MEDIA = frozenset(
    "dvd dvds blu bluray film films movie movies video videos videorecording vhs vm visual cd cds cdrom audio"
    " audiobook audiobooks hörbuch hörbücher music musik musique mu mx sound recording recordings tonträger vinyl lp"
    " mp3 serial serials periodical periodicals journal journals magazine magazines newspaper newspapers zeitschrift"
    " zeitschriften zeitung cr map maps karte mp game games spiel spiele toy puzzle software cf microfilm microform"
    " mikroform mikroformen score scores article articles película revista revue disque jeu juego".split()
)
# The words that stand beside them.
MEDIA_WORDS = OTHER_MEDIA.union(
    "rom ray disc disk compact electronic resource elektronische ressource edition large print".split()
)
# The words of a state, of its column or of its text, in which the library no longer has the book, and those of "no".
GONE = frozenset(
    "deleted isdeleted withdrawn lost itemlost missing discarded weeded suppressed gelöscht ausgesondert verloren"
    " vermisst".split()
)
NO = frozenset("0 f false n no none non nein - falsch".split())
WORDS = re.compile(r"[^\W_]+")
PART = gettext_noop("a part of a book")
ARTICLE = gettext_noop("an article")
# A part has the ISBN of its book, so it would take the book's place.
OTHERS = {
    **dict.fromkeys(
        "chap echap inbook incollection bookinbook suppbook suppcollection inreference booksection"
        " encyclopediaarticle dictionaryentry conf cpaper inproceedings conference conferencepaper".split(),
        PART,
    ),
    **dict.fromkeys(
        "jour ejour jfull mgzn news inpr abst article suppperiodical journalarticle magazinearticle newspaperarticle"
        " blog blogpost preprint".split(),
        ARTICLE,
    ),
}


def describe_no_book(kind: str) -> str:
    """Returns the error for a record that is no book; `kind` is marked for translation."""
    return name_field("record", _("It is %(kind)s, not a book.") % {"kind": _(kind)})


def describe_unknown_kind(code: str) -> str:
    """Returns the warning about a record that may be no book."""
    return name_field("record", warn_kind(code))


def warn_kind(code: str) -> str:
    return _("Its kind is “%(code)s”, which may be no book.") % {"code": code[:MAX_SHOWN_NAME]}


def is_other_medium(text: str) -> bool:
    return not OTHER_MEDIA.isdisjoint(WORDS.findall(text.lower()))


def is_only_medium(text: str) -> bool:
    """Whether all that the text says is a medium."""
    return is_other_medium(text) and MEDIA_WORDS.issuperset(WORDS.findall(text.lower()))


def describe_kind(code: str) -> tuple[str, str]:
    """Returns the error and the warning about a record with this code; both are empty for a book."""
    kind = code.strip().lower()
    if kind in OTHERS:
        return describe_no_book(OTHERS[kind]), ""
    return "", "" if kind in BOOKS else describe_unknown_kind(code.strip())


def describe_medium(text: str, *, is_kind: bool) -> tuple[str, str]:
    """Returns the error and the warning about a record of a table whose medium this is; both are empty for a book. A
    column that names a kind (`is_kind`) has no other text for a book; the others may have a size or a place.
    """
    problem, warning = describe_kind(text)
    is_known = not is_kind or not (FORMS | BOOKS).isdisjoint(WORDS.findall(text.lower()))
    return problem, warning if is_other_medium(text) or not is_known else ""


def describe_state(text: str, column: str) -> tuple[str, str]:
    """Returns no error, and the warning about a record of a table whose state says that the book is gone."""
    state = f"{column} {text.strip()}"
    is_gone = text.strip().lower() not in NO and not GONE.isdisjoint(WORDS.findall(state.lower()))
    return "", describe_unknown_kind(state) if is_gone else ""

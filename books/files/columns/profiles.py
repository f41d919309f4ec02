"""The programs whose tables are recognised by their columns, and what these have of a book. A new one is a row."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from books.files.columns.names import simplify_name
from books.members import MEMBERS, REQUIRED_MEMBERS


class Profile(NamedTuple):
    """`marks` are columns that, together, only files of the program have. `columns` are those of each member, of which
    the first counts that has something; all other columns are left out.

    The texts of an exact file are kept as they are, whatever they contain.
    """

    name: str
    marks: Sequence[str]
    columns: Mapping[str, Sequence[str]]
    is_exact: bool = False


PROFILES = (
    Profile(
        "Library API",
        marks=["id", *REQUIRED_MEMBERS, "created_at"],
        columns={name: [name] for name in ("id", *MEMBERS)},
        is_exact=True,
    ),
    Profile(
        "Goodreads",
        marks=["Title", "Author l-f"],
        columns={
            "title": ["Title"],
            "author": ["Author", "Author l-f"],
            "year": ["Year Published", "Original Publication Year"],
            "isbn": ["ISBN", "ISBN13"],
            "genre": ["Bookshelves"],
        },
    ),
    Profile(
        "Zotero",
        marks=["Key", "Item Type", "Publication Year"],
        columns={
            "title": ["Title"],
            "author": ["Author", "Editor"],
            "year": ["Publication Year", "Date"],
            "isbn": ["ISBN"],
            "genre": ["Manual Tags", "Automatic Tags"],
        },
    ),
    Profile(
        "LibraryThing",
        marks=["Title", "Primary Author"],
        columns={
            "title": ["Title"],
            "author": ["Primary Author", "Secondary Author"],
            "year": ["Date"],
            "isbn": ["ISBN", "ISBNs"],
            "genre": ["Tags"],
        },
    ),
    Profile(
        "Calibre",
        marks=["title", "authors", "pubdate"],
        columns={
            "title": ["title"],
            "author": ["authors"],
            "year": ["pubdate"],
            "isbn": ["isbn", "identifiers"],
            "genre": ["tags"],
        },
    ),
)
# Of files that no program is recognised by.
NO_PROFILE = Profile("", [], {})


def find_profile(columns: Sequence[str]) -> Profile:
    """Returns that of the program that writes files with these columns, else NO_PROFILE."""
    names = {simplify_name(column) for column in columns}
    return next((profile for profile in PROFILES if names.issuperset(map(simplify_name, profile.marks))), NO_PROFILE)

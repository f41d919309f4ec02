"""The fields of a book that people and programs write, in the order in which files and pages show them.

Other modules derive their lists from this table and from the model. The table does not use the model, because processes
without settings read files, too. `tests/rules/books/test_fields.py` compares it with the model, and with the lists
that are written by hand.
"""

from typing import Any, NamedTuple


class BookField(NamedTuple):
    """A field of a book: its limits, an example for the documents, and its names in other programs' files.

    `columns` are names of columns, folded and without punctuation; the first that a file has is used. `bibtex` are
    fields, `ris` tags; exports write the first. Exports write the subfield `marc`: its tag, indicators and code.
    """

    name: str
    example: Any
    columns: tuple[str, ...]
    bibtex: tuple[str, ...]
    ris: tuple[str, ...]
    marc: tuple[str, str, str]
    max_length: int | None = None
    # Whether a new book must have it.
    is_required: bool = True
    # How many columns of a file may contain it.
    column_count: int = 1


BOOK_FIELDS = (
    BookField(
        "title",
        "Pride and Prejudice",
        columns=("title", "booktitle", "titel", "name", "buchtitel", "titre", "titrepropre", "título", "titulo"),
        bibtex=("title",),
        ris=("TI", "T1", "BT", "CT"),
        marc=("245", "00", "a"),
        max_length=1000,
    ),
    BookField(
        "author",
        "Jane Austen",
        columns=tuple(
            (
                "author authors autor autoren verfasser creator creators writer authorname primaryauthor"
                " mainauthor auteur auteurs auteurprincipal autores"
            ).split()
        ),
        bibtex=("author", "editor"),
        ris=("AU", "A1", "A2", "ED"),
        marc=("100", "0 ", "a"),
        max_length=500,
        column_count=2,
    ),
    BookField(
        "year",
        1813,
        # Without one of the others, a date may be the day on which a library got the book.
        columns=tuple(
            (
                "publicationyear yearofpublication yearpublished publishedyear publishyear pubyear"
                " erscheinungsjahr veröffentlichungsjahr annéedepublication annéedeparution annéedédition"
                " añodepublicación year jahr année annee año ano publicationdate dateofpublication datepublished"
                " publishdate published pubdate"
                " erscheinungsdatum datedepublication datedeparution fechadepublicación copyright"
                " copyrightyear copyrightdate firstpublished firstpublishyear publishedin released releasedate"
                " releaseyear erschienen originalpublicationyear erstausgabe date"
            ).split()
        ),
        bibtex=("year", "date"),
        ris=("PY", "Y1", "DA"),
        marc=("264", " 1", "c"),
        column_count=2,
    ),
    BookField(
        "isbn",
        "9780141439518",
        columns=("isbn", "isbn13", "isbn10", "isbns", "ean", "isbnean", "isbnissn"),
        bibtex=("isbn",),
        ris=("SN",),
        marc=("020", "  ", "a"),
        max_length=64,
        column_count=3,
    ),
    BookField(
        "genre",
        "Romance",
        columns=tuple(
            (
                "genre genres category categories subject gattung kategorie sachgebiet bookshelves tags keywords"
                " subjects schlagwörter sujet catégorie género genero materia categoría"
            ).split()
        ),
        bibtex=("keywords", "genre"),
        ris=("KW", "M3"),
        marc=("655", " 4", "a"),
        max_length=200,
        column_count=2,
    ),
    BookField(
        "available",
        example=True,
        columns=("available", "availability", "verfügbar", "verfügbarkeit", "disponible"),
        bibtex=("library",),
        # C1 is for private use.
        ris=("C1",),
        marc=("876", "  ", "j"),
        is_required=False,
    ),
)
FIELDS = tuple(field.name for field in BOOK_FIELDS)
REQUIRED_FIELDS = tuple(field.name for field in BOOK_FIELDS if field.is_required)
MAX_LENGTHS = {field.name: field.max_length for field in BOOK_FIELDS if field.max_length}
# The values of a new book by default.
EXAMPLE = {field.name: field.example for field in BOOK_FIELDS if field.is_required}

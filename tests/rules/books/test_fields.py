"""What is written by hand of the fields of a book is equal to their table and to the model."""

from collections import Counter
from collections.abc import Collection
from itertools import chain, repeat

import pytest

from books.api.filters import BookSearchFilter, get_filters
from books.book.fields import BOOK_FIELDS, FIELDS, REQUIRED_FIELDS
from books.book_values import BookValues
from books.files.formats.marc_fields import build_record, group_fields, read_fields
from books.files.formats.records import ExportedBook
from books.files.seeds import generate_books
from books.models import DERIVED_FIELDS, FIELD_DEFAULTS, FOLDED_COLUMNS, Book
from books.search.sections import SORT_KEYS

COLUMNS = [field.name for field in Book._meta.concrete_fields]
# The library decides what these are.
GIVEN = {"id", "created_at", "updated_at", "version", *(field.name for field in DERIVED_FIELDS)}
SHOWN = [name for name in COLUMNS if name not in FOLDED_COLUMNS.values()]


def test_fields_are_the_columns_that_people_write() -> None:
    assert [name for name in COLUMNS if name not in GIVEN] == list(FIELDS)


def test_fields_have_the_bounds_of_the_columns() -> None:
    for book_field in BOOK_FIELDS:
        column = Book._meta.get_field(book_field.name)
        assert book_field.max_length == getattr(column, "max_length", None), book_field
        assert book_field.is_required is (book_field.name not in FIELD_DEFAULTS), book_field


def test_every_reader_of_rows_and_files_knows_the_types_of_fields() -> None:
    """docs/recipes/field.md says what another type needs; a list in JSON, say, would be shown as text on SQLite."""
    types = {Book._meta.get_field(name).get_internal_type() for name in FIELDS}
    assert types <= {"CharField", "IntegerField", "BooleanField"}


@pytest.mark.parametrize(
    ("place", "names", "expected"),
    [
        ("books.book_values.BookValues", BookValues._fields, COLUMNS),
        ("books.files.formats.records.ExportedBook", ExportedBook.__struct_fields__, SHOWN),
        ("books.files.seeds.generate_books", next(generate_books(1, 0)), REQUIRED_FIELDS),
    ],
)
def test_a_list_has_each_field(place: str, names: Collection[str], expected: Collection[str]) -> None:
    assert set(names) == set(expected), place


def test_marc_21_has_each_field() -> None:
    values = dict(zip(SHOWN, repeat("2026-01-31T09:30:00.000000Z"))) | {"id": 7, "isbn13": None, "version": 1}
    examples = {book_field.name: book_field.example for book_field in BOOK_FIELDS}
    record = build_record(ExportedBook(**{**values, **examples}))
    texts = {name: value if isinstance(value, bool) else str(value) for name, value in examples.items()}
    assert read_fields(record, group_fields(record), Counter())[0] == {"id": "7", **texts}


@pytest.mark.parametrize("option", ["columns", "bibtex", "ris", "marc"])
def test_no_two_fields_have_one_name_in_files(option: str) -> None:
    names = [getattr(book_field, option) for book_field in BOOK_FIELDS]
    names = names if option == "marc" else list(chain.from_iterable(names))
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("books.search.sections.SORT_KEYS", SORT_KEYS),
        ("books.api.filters.BookSearchFilter", {name.partition("_")[0] for name in get_filters(BookSearchFilter)}),
    ],
)
def test_books_are_sorted_and_found_by_what_each_has(place: str, names: Collection[str]) -> None:
    assert set(REQUIRED_FIELDS) <= set(names), place

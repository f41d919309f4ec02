"""The lists of a book's members that no code derives: each has what the model has."""

from collections.abc import Collection

import pytest

from books.admin.files.forms import MEMBER_LABELS
from books.admin.list.settings import LIST_COLUMNS
from books.api.filters import BookSearchFilter, get_filters
from books.api.v2.documents.books import BOOK_EXAMPLE
from books.api.v2.serializers import BookChangeSerializer, BookSerializer
from books.files.formats.records import ExportedBook
from books.files.mapping import COLUMN_NAMES
from books.files.parsing import REQUIRED_MEMBERS, ImportedBookSerializer
from books.members import MEMBERS
from books.models import DERIVED_FIELDS, MAX_LENGTHS, Book
from books.rows import BookRow
from books.search.keyset import SORT_KEYS

pytestmark = pytest.mark.database_independent

COLUMNS = [field.name for field in Book._meta.concrete_fields]
# The library decides what these are.
GIVEN = {"id", "created_at", "updated_at", "version", *(field.name for field in DERIVED_FIELDS)}
FOLDED = {"title_folded", "author_folded", "genre_folded"}
SHOWN = [name for name in LIST_COLUMNS if name not in FOLDED]


def test_members_are_the_columns_that_people_write() -> None:
    assert [name for name in LIST_COLUMNS if name not in GIVEN] == list(MEMBERS)


@pytest.mark.parametrize(
    ("place", "names", "expected"),
    [
        ("books.rows.BookRow", BookRow._fields, LIST_COLUMNS),
        ("books.files.formats.records.ExportedBook", ExportedBook.__struct_fields__, SHOWN),
        ("books.files.parsing.REQUIRED_MEMBERS", {*REQUIRED_MEMBERS, "available"}, MEMBERS),
        ("books.files.parsing.ImportedBookSerializer", {*ImportedBookSerializer().fields, "available"}, MEMBERS),
        ("books.files.mapping.COLUMN_NAMES", COLUMN_NAMES, ["id", *MEMBERS]),
        ("books.admin.files.forms.MEMBER_LABELS", MEMBER_LABELS, ["id", *MEMBERS]),
        ("books.api.v2.serializers.BookSerializer", BookSerializer.Meta.fields, SHOWN),
        ("books.api.v2.serializers.BookChangeSerializer", BookChangeSerializer().fields, MEMBERS),
        ("books.api.v2.documents.books.BOOK_EXAMPLE", BOOK_EXAMPLE, SHOWN),
    ],
)
def test_a_list_has_each_member(place: str, names: Collection[str], expected: Collection[str]) -> None:
    assert set(names) == set(expected), place


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("books.search.keyset.SORT_KEYS", {*SORT_KEYS, "available"}),
        (
            "books.admin.list.settings.LIST_COLUMNS",
            {"available" if name == "availability" else name for name in LIST_COLUMNS},
        ),
        ("books.api.filters.BookSearchFilter", {name.partition("_")[0] for name in get_filters(BookSearchFilter)}),
    ],
)
def test_books_are_sorted_shown_and_found_by_each_member(place: str, names: Collection[str]) -> None:
    assert set(MEMBERS) <= set(names), place


def test_each_text_has_a_bound() -> None:
    texts = {field.name for field in Book._meta.concrete_fields if field.max_length and field.name in MEMBERS}
    assert texts == MAX_LENGTHS.keys()

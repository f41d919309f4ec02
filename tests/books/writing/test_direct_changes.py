"""The statement of PostgreSQL that changes a book without reading it before writes what the other writers write."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection, models, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from books.history.records import record_change
from books.models import Book, Change
from books.rows import BookRow, make_row
from books.writing import statements
from books.writing.changes import change_book, read_rows
from books.writing.direct_changes import change_row, require_encodable
from books.writing.events import updated_event
from library_site.api.responses import encode_json
from library_site.db.sql import execute, fetch_all
from tests.support.books import ACTOR
from tests.support.books_admin import create_book
from webhooks.models import Event
from webhooks.outbox import EventBody, encode_body

pytestmark = [
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite reads a book before it changes it"),
    pytest.mark.usefixtures("db"),
]
NOW = datetime(2026, 11, 24, 8, tzinfo=UTC)

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
isbns = st.sampled_from(["9780141439518", "0-14-143951-3", "LOC 17"]) | texts
members = {
    "title": texts,
    "author": texts,
    "year": st.integers(-(2**31), 2**31 - 1),
    "isbn": isbns,
    "genre": texts,
    "available": st.booleans(),
}
created_times = st.datetimes(timezones=st.just(UTC)) | st.just(NOW)


@given(st.fixed_dictionaries(members), st.fixed_dictionaries({}, optional=members), created_times)
def test_a_change_has_the_record_and_the_event_of_the_other_writers(
    old: dict[str, Any], values: dict[str, Any], created_at: datetime
) -> None:
    if not values:
        return
    with transaction.atomic():
        try:
            check_change(insert_book(old, created_at), values)
        finally:
            transaction.set_rollback(True)


def insert_book(values: Mapping[str, Any], created_at: datetime) -> BookRow:
    book = make_row(values, created_at)
    pk = statements.insert_row(book, ACTOR, created_at, announce=True)
    assert pk is not None
    return book._replace(id=pk)


def check_change(book: BookRow, values: Mapping[str, Any]) -> None:
    columns = book.find_changes(values, NOW)
    expected = book._replace(**columns)
    assert change_row(book.id, values, ACTOR, NOW) == (book, expected if columns else None)
    assert read_rows(Book.objects.filter(pk=book.id)) == [expected]
    events, records = Event.objects.order_by("-id"), Change.objects.filter(book_id=book.id, version=book.version + 1)
    if not columns:
        assert (len(events), len(records)) == (1, 0)
        return
    event, [record] = events[0], records
    head = (event.uuid, "book.updated", "2026-11-24T08:00:00.000000Z", 2)
    data = updated_event(book, expected).data
    assert (event.kind, event.subject, event.created_at) == ("book.updated", book.id, NOW)
    assert bytes(event.body) == encode_body(EventBody(*head, data))
    expected_record = record_change(book, expected)
    before_and_after = [json.loads(text or "") for text in (expected_record.before, expected_record.after)]
    assert (record.kind, record.at, record.actor_id) == (expected_record.kind, NOW.replace(tzinfo=None), ACTOR.id)
    assert [record.before, record.after] == before_and_after


def test_all_characters_are_encoded_as_in_other_answers() -> None:
    text = "".join(chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000)
    [(by_postgresql,)] = fetch_all("SELECT to_json(%s::text)::text", [text])
    assert by_postgresql.encode() == encode_json(text)


@pytest.mark.parametrize(
    ("column", "field"), [("year", models.DateTimeField()), ("updated_at", models.DateTimeField(null=True))]
)
def test_a_column_of_a_type_that_is_encoded_differently_is_refused(
    monkeypatch: pytest.MonkeyPatch, column: str, field: "models.Field[Any, Any]"
) -> None:
    monkeypatch.setitem(statements.FIELDS, column, field)
    with pytest.raises(TypeError, match=f"encodes {column} as JSON"):
        require_encodable(["title", column])


def test_equal_values_lock_no_book() -> None:
    book = create_book()
    with CaptureQueriesContext(connection) as queries:
        assert change_book(book.pk, {"title": book.title}, None, ACTOR, NOW).version == 1
    assert not [query for query in queries if "FOR UPDATE" in query["sql"]]


@pytest.mark.unannounced
@pytest.mark.unrecorded
def test_the_answer_has_the_derived_columns_that_were_written() -> None:
    book = create_book(isbn="9780141439518")
    execute("UPDATE books_book SET isbn13 = NULL WHERE id = %s", [book.pk])
    changed_book = change_book(book.pk, {"isbn": book.isbn, "title": "Emma"}, None, ACTOR, NOW)
    assert [changed_book] == read_rows(Book.objects.filter(pk=book.pk))
    assert changed_book.isbn13 == "9780141439518"


def test_an_unknown_book_is_not_changed() -> None:
    create_book()
    assert change_row(-1, {"year": 1}, ACTOR, NOW) == (None, None)
    assert Book.objects.filter(year=1).count() == 0


def test_one_book_alone_is_changed() -> None:
    with transaction.atomic():
        first, second = create_book(isbn="first"), create_book(isbn="second")
    change_row(first.pk, {"title": "Emma"}, ACTOR, NOW)
    assert list(Book.objects.order_by("pk").values_list("title", "version")) == [("Emma", 2), (second.title, 1)]

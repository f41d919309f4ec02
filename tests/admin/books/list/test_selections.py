"""The list, its preview, its operations and its exports have the same books, whatever the zone of the reader."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from books.admin.list.filters import UnresolvedFilter, resolve_filters, select_listed
from books.files.export_tasks import iter_workbook
from books.models import Book, Operation
from books.operations.lifecycle import store_operation
from books.operations.selection_tasks import DELETE, StoredFilter
from books.writing import changes
from library_site.http.localization import ZONE_COOKIE
from tests.support.admin_pages import read_inputs, read_text
from tests.support.book_files import read_records
from tests.support.books import build_book
from tests.support.books_admin import LIST, create_book, find_anybody
from tests.support.operations import create_head_librarian, run_operations

BULK_EDIT, EXPORT = f"{LIST}bulk_edit/", f"{LIST}export/"
# When a day begins: in the earliest zone, with summer time that begins or ends, and without midnight.
DAYS = [
    ("Pacific/Kiritimati", "2026-01-31", datetime(2026, 1, 30, 10, tzinfo=UTC)),
    ("Europe/Berlin", "2026-03-30", datetime(2026, 3, 29, 22, tzinfo=UTC)),
    ("America/New_York", "2026-11-02", datetime(2026, 11, 2, 5, tzinfo=UTC)),
    ("America/Havana", "2026-03-08", datetime(2026, 3, 8, 5, tzinfo=UTC)),
]


def add_around(moment: datetime) -> None:
    for title, at in (("Before", moment - timedelta(microseconds=1)), ("Since", moment)):
        changes.create_book(build_book(title=title), find_anybody(), now=at)


def list_titles() -> list[str]:
    return list(Book.objects.order_by("pk").values_list("title", flat=True))


def preview_deletion(head: Client, query: str) -> dict[str, Any]:
    """Returns the confirmation that the preview asks for."""
    return read_inputs(read_text(head.post(f"{BULK_EDIT}?{query}", {"change": "delete"})))


@pytest.mark.parametrize(("zone", "day", "moment"), DAYS)
def test_a_day_begins_in_the_readers_zone(db: None, zone: str, day: str, moment: datetime) -> None:
    add_around(moment)
    with timezone.override(zone):
        values = resolve_filters({"added_since": day}, timezone.now())
    assert [book.title for book in select_listed(values)] == ["Since"]


def test_a_day_is_that_of_the_reader_in_the_list_in_files_and_in_operations(head: Client) -> None:
    zone, day, moment = DAYS[0]
    add_around(moment)
    head.cookies[ZONE_COOKIE] = zone
    query = f"added_since={day}"
    assert [book.title for book in head.get(f"{LIST}?{query}").context["cl"].result_list] == ["Since"]
    exported = head.get(f"{EXPORT}?format=csv&{query}").getvalue()
    assert [record.values["title"] for record in read_records("csv", exported)] == ["Since"]
    head.post(f"{EXPORT}?format=xlsx&{query}")
    run_operations()
    workbook = b"".join(iter_workbook(Operation.objects.latest("pk")))
    assert [record.values["title"] for record in read_records("xlsx", workbook)] == ["Since"]
    confirmation = preview_deletion(head, query)
    # What was previewed is done, from whatever zone it is confirmed.
    head.cookies[ZONE_COOKIE] = "Etc/GMT+12"
    head.post(f"{BULK_EDIT}?{query}", confirmation)
    run_operations()
    assert list_titles() == ["Before"]


def test_a_confirmation_that_was_not_previewed_does_nothing(head: Client) -> None:
    create_book()
    confirmation = preview_deletion(head, "")
    for question in ("", "x", confirmation["question"][:-1]):
        page = head.post(BULK_EDIT, {**confirmation, "question": question})
        assert "What to do" in read_text(page)
    assert not Operation.objects.exists()


@pytest.mark.parametrize(("now", "years"), [("2026-12-31T23:59Z", [2028]), ("2027-01-01T00:00Z", [])])
def test_the_year_is_that_of_the_moment(db: None, now: str, years: list[int]) -> None:
    create_book(year=2027), create_book(year=2028)
    values = resolve_filters({"quality": "year"}, datetime.fromisoformat(now))
    assert list(select_listed(values).values_list("year", flat=True)) == years


def test_a_list_in_german_means_the_same_to_the_worker(head: Client) -> None:
    add_around(datetime(2026, 1, 31, tzinfo=UTC))
    german = {"Accept-Language": "de"}
    page = head.post(f"{BULK_EDIT}?added_since=31.01.2026", {"change": "delete"}, headers=german)
    assert "31. Jan. 2026, 00:00 UTC" in read_text(page)
    head.post(f"{BULK_EDIT}?added_since=31.01.2026", read_inputs(read_text(page)), headers=german)
    run_operations()
    assert list_titles() == ["Before"]


@pytest.mark.parametrize("values", [{"added_since": "2026-01-31"}, {"quality": "duplicates"}, {"year_from": "x"}])
def test_a_filter_that_does_not_say_which_books_fails(db: None, values: dict[str, str]) -> None:
    """As earlier releases stored them: in the zone of the worker they could mean more books than were confirmed."""
    create_book()
    stored = StoredFilter("list", {**values, "today": "2026-01-31"})
    with pytest.raises(UnresolvedFilter):
        stored.list_books()
    store_operation(DELETE, {"filter": stored._asdict()}, create_head_librarian(), timezone.now())
    run_operations()
    operation = Operation.objects.get()
    assert (operation.state, operation.error) == (
        "failed",
        "The filter of the list cannot be read any more. Begin again from the list.",
    )
    assert Book.objects.count() == 1

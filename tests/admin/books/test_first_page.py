"""The first page of the admin: find and lend, numbers, charts, and what changed last and by whom."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from books import summaries
from books.admin import first_page
from books.admin.charts import build_chart
from books.models import Actor, Book, Change, Summary
from tests.support.admin_pages import read_text, read_words
from tests.support.books import build_book, build_isbn
from tests.support.books_admin import ADD, LIST, RECENT_CHANGES, add_actor, change_book, create_book

INDEX = "/admin/"
LEND = "/admin/books/book/lend/"


def list_counts(response: Any) -> dict[str, int]:
    return {count.address: count.books for count in response.context["counts"]}


def test_a_book_can_be_lent_there(librarian: Client) -> None:
    book, index = create_book(), read_text(librarian.get(INDEX))
    # The box for a scan has the focus.
    [box] = [line for line in index.splitlines() if 'id="scan-code"' in line]
    assert ("autofocus" in box, index.count("autofocus")) == (True, 1)
    [form] = re.findall(rf'<form[^>]*action="{LEND}".*?</form>', index, re.DOTALL)
    assert re.findall(r'name="state" value="(\w+)"', form) == ["lent", "available"]
    page = librarian.post(LEND, {"code": book.isbn, "state": "lent"}, follow=True)
    assert "was available, is now lent" in read_text(page)
    assert not Book.objects.get().available


def test_the_last_changes_name_the_book_and_the_person(librarian: Client) -> None:
    librarian.post(ADD, build_book(title="Emma & I", isbn=build_isbn(1), available="on"))
    page = read_text(librarian.get(INDEX))
    assert f'<a href="{LIST}{Book.objects.get().pk}/history/">Emma &amp; I</a>' in page
    assert "astrid</a>" in page


def test_a_change_is_one_line(librarian: Client) -> None:
    for values, word, detail in (
        ({"available": False}, "lent", ""),
        ({"available": True}, "taken back", ""),
        ({"year": 1814}, "changed", "Year: 1813 → 1814"),
        ({"year": 1815, "genre": "Novel"}, "changed", "Year: 1813 → 1815, …"),
    ):
        book = create_book(year=1813, genre="Romance", available=word != "taken back")
        change_book(book, **values)
        item = librarian.get(INDEX).context["feed"][0]
        assert (item["change"].kind, item["subject"].text, item["detail"]) == (word, book.title, detail)


def test_an_operation_is_one_line_however_many_books_it_changed(librarian: Client) -> None:
    books = [create_book(title=f"Book {number}") for number in range(4)]
    change_book(books[0], year=1)
    pks = [str(book.pk) for book in books]
    for action in ("mark_lent", "mark_available"):
        librarian.post(LIST, {"action": action, "_selected_action": pks})
    items = librarian.get(INDEX).context["feed"]
    assert [(item["change"].kind, item["subject"].text, item["detail"]) for item in items[:3]] == [
        ("taken back", "4 books marked as available", "Book 0, Book 1, Book 2, …"),
        ("lent", "4 books marked as lent", "Book 0, Book 1, Book 2, …"),
        ("changed", "Book 0", items[2]["detail"]),
    ]
    assert [item["subject"].text for item in items[2:]] == ["Book 0", "Book 3", "Book 2", "Book 1", "Book 0"]


def test_each_count_is_that_of_the_list_it_leads_to(librarian: Client) -> None:
    for fields in ({"isbn": "0141439513"}, {"year": 1, "genre": " "}, {"title": "Emma", "genre": ""}, {"genre": "!"}):
        create_book(**fields)
    counts = list_counts(librarian.get(INDEX))
    assert [*counts.values()] == [3, 1, 2]
    assert {address: librarian.get(address).context["cl"].result_count for address in counts} == counts


def test_the_duplicates_are_counted_as_their_page_lists_them(head: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        create_book(title="Emma", author=("Jane Austen", "Austen, Jane")[number % 2], isbn=f"978014143951{8 - number}")
    for limit, shown in ((3, "3"), (2, "over 2")):
        monkeypatch.setattr("books.search.duplicates.MAX_PAIRS", limit)
        monkeypatch.setattr("books.summaries.MAX_PAIRS", limit)
        [quality] = [number for number in head.get(INDEX).context["counts"] if "duplicates" in number.label]
        assert str(quality.books) == shown
        assert str(head.get(quality.address).context["duplicates"].number) == shown
    assert str(head.get(INDEX).context["to_look_at"]).startswith("over ")


@pytest.mark.unannounced
@pytest.mark.unrecorded
def test_the_numbers_are_those_of_the_lists_they_lead_to(librarian: Client) -> None:
    for number in range(3):
        create_book(available=number > 0)
    Book._base_manager.filter(available=True).update(created_at=timezone.now() - timedelta(days=8))
    response = librarian.get(INDEX)
    numbers = {number.label: number for number in response.context["numbers"]}
    assert {label: number.books for label, number in numbers.items()} == {
        "Books": 3,
        "Lent": 1,
        "Added in seven days": 1,
    }
    for number in numbers.values():
        assert librarian.get(number.address).context["cl"].result_count == number.books
    assert response.context["to_look_at"] == sum(list_counts(response).values())


def test_genres_and_decades_are_charts_with_their_numbers(librarian: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_page, "MAX_SHOWN_GENRES", 1)
    monkeypatch.setattr(first_page, "MAX_DECADES", 2)
    for year, genre in ((1813, "Novel"), (1925, "novel"), (1926, "Drama"), (1931, "Novel"), (1, "Novel")):
        create_book(year=year, genre=genre)
    context = librarian.get(INDEX).context
    assert [(bar["name"], bar["books"], bar["address"]) for bar in context["genres"]] == [
        ("Novel", 4, f"{LIST}?genre=Novel"),
        ("Others", 1, "/admin/books/book/genres/"),
    ]
    assert [(column.label, column.total, column.address) for column in context["decades"].columns] == [
        ("before 1920", 1, f"{LIST}?year_from=1400&year_to=1919"),
        ("1920–1929", 2, f"{LIST}?year_from=1920&year_to=1929"),
        ("1930–1939", 1, f"{LIST}?year_from=1930&year_to=1939"),
    ]
    counts = [(bar["address"], bar["books"]) for bar in context["genres"][:1]]
    for address, count in [*counts, *((column.address, column.total) for column in context["decades"].columns)]:
        assert librarian.get(address).context["cl"].result_count == count


def test_the_lines_of_a_chart_have_round_numbers() -> None:
    for highest, numbers in ((0, "0 1"), (1, "0 1"), (8, "0 2 4 6 8"), (12, "0 5 10 15"), (2_540, "0 1000 2000 3000")):
        ticks = build_chart(["a"], [(highest,)], [""]).ticks
        assert " ".join(str(tick.number) for tick in reversed(ticks)) == numbers
        assert (ticks[0].y, ticks[-1].y) == (0, 100)


def test_days_far_above_all_others_are_cut_and_named() -> None:
    def build(*totals: int, can_cut: bool = True) -> tuple[list[str], int]:
        rows = [(total, 1) for total in totals]
        chart = build_chart([*"abcde"], rows, [""] * 5, can_cut=can_cut)
        assert {part.y + part.height for column in chart.columns for part in column.parts if part.series == 1} == {100}
        return [column.label for column in chart.cut], chart.ticks[0].number

    assert build(9, 2_000, 11, 500, 3) == (["b", "d"], 15)
    assert build(9, 44, 11, 12, 3) == ([], 60)
    assert build(9, 2_000, 11, 500, 3, can_cut=False) == ([], 3_000)
    chart = build_chart([*"abcde"], [(2_000,), (1_900,), (10,), (0,), (0,)], [""] * 5, can_cut=True)
    assert chart.ticks[0].number == 10
    column = build_chart([*"abcd"], [(1,), (1,), (1,), (60,)], [""] * 4, can_cut=True).columns[-1]
    assert [(part.series, part.y, part.height) for part in column.parts] == [(1, 0, 100), (0, 8, 4)]
    assert "<title>&lt;1450</title>" in str(column.parts[0]._replace(title="<1450"))


def test_changes_are_counted_by_day_and_person(librarian: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_page, "MAX_PEOPLE", 2)
    book = create_book(add_actor(Actor.Channel.ADMIN, user_name="ada"))
    # One person, through two channels.
    for channel in (Actor.Channel.ADMIN, Actor.Channel.V2):
        change_book(book, add_actor(channel, user_name="ben"), year=book.year - len(channel))
        book.refresh_from_db()
    change_book(book, year=1)
    # After a restored backup, an actor can be unknown.
    Actor.objects.filter(user_name="").delete()
    context = librarian.get(INDEX).context
    assert [(one["name"], one["changes"], one["address"]) for one in context["series"]] == [
        ("ben", 2, f"{RECENT_CHANGES}?user=ben"),
        ("ada", 1, f"{RECENT_CHANGES}?user=ada"),
        ("Others", 1, ""),
    ]
    days = context["days"].columns
    assert len(days) == 30
    assert [list(day.values) for day in days[-2:]] == [[0, 0, 0], [2, 1, 1]]
    assert not context["has_chart"]
    # In a library of many people, only those with most changes are counted by name.
    monkeypatch.setattr(summaries, "MAX_COUNTED_PEOPLE", 1)
    context = librarian.get(INDEX).context
    assert [(one["name"], one["changes"]) for one in context["series"]] == [("ben", 2), ("Others", 2)]
    nameless = [add_actor(channel).id for channel in (Actor.Channel.V1, Actor.Channel.V2)]
    assert summaries.merge_actors(nameless) == {pk: pk for pk in nameless}
    assert [list(day.values) for day in context["days"].columns[-2:]] == [[0, 0], [2, 2]]


def test_people_are_chosen_by_the_days_that_are_shown(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "MAX_COUNTED_PEOPLE", 1)
    now = datetime(2026, 1, 31, 3, tzinfo=UTC)
    names = ("before", "first", "second")
    former, first, second = actors = [add_actor(Actor.Channel.ADMIN, user_name=name) for name in names]
    for actor in (*actors, former):
        create_book(actor)
    Change.objects.update(at=now)
    # One zone may see the end of this day.
    Change.objects.filter(actor_id=former.id).update(at=now - timedelta(days=30.9))
    numbers = summaries.count_changes(now)
    assert numbers["people"][now.isoformat()] == {str(first.id): 1, summaries.OTHERS: 1}
    # Processes of the release before know no others.
    assert numbers["days"][now.date().isoformat()] == {str(first.id): 1, str(second.id): 1}


def test_days_are_those_of_the_readers_zone(librarian: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 1, 31, 3, 30, tzinfo=UTC)
    create_book()
    Change.objects.update(at=now - timedelta(hours=1))
    monkeypatch.setattr("django.utils.timezone.now", lambda: now + timedelta(hours=12))
    for zone, age in (("UTC", 0), ("America/New_York", 1)):
        librarian.cookies["time_zone"] = zone
        days = librarian.get(INDEX).context["days"].columns
        assert [place for place, day in enumerate(reversed(days)) if day.total] == [age], zone


class TestSummaries:
    """What takes too long to count is stored, and says when it was counted."""

    NOW = datetime(2026, 11, 23, 12, tzinfo=timezone.get_default_timezone())

    @pytest.fixture
    def is_slow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(summaries, "LIVE_SECONDS", -1)

    def read(self, **age: float) -> int:
        return int(summaries.read_summary("books", self.NOW + timedelta(**age)).numbers["books"])

    def test_what_is_quick_is_counted_by_each_page(self, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(summaries, "LIVE_SECONDS", 1000)
        assert self.read() == 0
        create_book()
        assert self.read() == 1

    def test_a_page_outlives_a_database_that_takes_no_writes(self, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(_: Summary) -> None:
            with connection.cursor() as cursor:
                cursor.execute("INSERT INTO no_table VALUES (1)")

        monkeypatch.setattr(summaries, "store", fail)
        create_book()
        # On PostgreSQL, a statement that fails ends all others of its transaction.
        assert [self.read(), self.read()] == [1, 1]

    def test_the_worker_alone_counts_what_is_slow(
        self, db: None, is_slow: None, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        summaries.refresh_summaries(self.NOW)
        create_book()
        with django_assert_num_queries(1):
            assert self.read(days=1) == 0
        for seconds, books in ((59, 0), (60, 1)):
            summaries.refresh_summaries(self.NOW + timedelta(seconds=seconds))
            assert self.read(seconds=61) == books

    def test_the_worker_counts_for_a_hundredth_of_its_time(self, db: None, is_slow: None) -> None:
        self.read()
        Summary.objects.update(seconds=3)
        create_book()
        for seconds, books in ((299, 0), (300, 1)):
            summaries.refresh_summaries(self.NOW + timedelta(seconds=seconds))
            assert self.read(seconds=301) == books

    def test_the_page_says_when_that_was(self, librarian: Client, is_slow: None) -> None:
        assert "were counted" not in read_words(librarian.get(INDEX))
        Summary.objects.update(counted_at=timezone.now() - timedelta(minutes=5))
        assert "Books, lent, decades and genres were counted 5 minutes ago ." in read_words(librarian.get(INDEX))


def test_everybody_sees_what_they_may_see(db: None, client: Client) -> None:
    person = User.objects.create_user("person", is_staff=True)
    client.force_login(person)
    for codename, shown in (("", (False, False)), ("view_book", (True, False)), ("view_history", (False, True))):
        person.user_permissions.set(Permission.objects.filter(codename=codename))
        page = read_text(client.get(INDEX))
        assert ("To look at" in page, ">Recent changes</h2>" in page) == shown
        assert ('name="code"' in page, "take back" in page) == (shown[0], False)

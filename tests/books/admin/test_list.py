"""The list of books: its search, filters, order and pages, its columns, and the views that a person saves."""

from datetime import date
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from books.admin.list import settings
from books.models import Book, ListSettings, Operation, SavedView
from books.search import quality
from tests.support.admin_pages import read_text
from tests.support.books_admin import LIST, change_book, create_book

COLUMNS = f"{LIST}columns/"
SAVE_VIEW = f"{LIST}views/save/"
DELETE_VIEW = f"{LIST}views/delete/"


def list_titles(client: Client, **query: Any) -> list[str]:
    return [book.title for book in client.get(LIST, query).context["cl"].result_list]


def list_links(answer: Any) -> dict[str, str]:
    return {link.text: f"{LIST}{link.address}" for link in answer.context["cl"].list_page_links()}


def list_headers(answer: Any) -> dict[str, Any]:
    return {header.text: header for header in answer.context["cl"].list_headers()}


@pytest.fixture
def three_books(db: None) -> None:
    create_book(title="Germinal", author="Émile Zola", year=1885, genre="Novel", isbn="978-0-14-044742-2")
    create_book(title="Nana", author="Émile Zola", year=1880, genre="novel", isbn="nana")
    change_book(create_book(title="Beowulf", author="unknown", year=1000, genre="Poetry"), available=False)


@pytest.mark.usefixtures("three_books")
@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ({}, ["Beowulf", "Nana", "Germinal"]),
        ({"author": "zola émile"}, ["Nana", "Germinal"]),
        ({"genre": "NOVEL"}, ["Nana", "Germinal"]),
        ({"genre": "nov"}, []),
        ({"year_from": 1880}, ["Nana", "Germinal"]),
        ({"year_from": 1880, "year_to": 1880}, ["Nana"]),
        ({"availability": "lent"}, ["Beowulf"]),
        ({"availability": "available"}, ["Nana", "Germinal"]),
        ({"quality": "no_isbn"}, ["Beowulf", "Nana"]),
        ({"quality": "year"}, ["Beowulf"]),
        ({"quality": "year", "genre": "novel"}, []),
        ({"quality": "no_isbn", "author": "Zola", "q": "na"}, ["Nana"]),
        ({"sort": "title"}, ["Beowulf", "Germinal", "Nana"]),
        ({"sort": "-year"}, ["Germinal", "Nana", "Beowulf"]),
        ({"sort": "genre"}, ["Germinal", "Nana", "Beowulf"]),
        ({"sort": "isbn", "author": "Zola"}, ["Germinal", "Nana"]),
        ({"sort": "availability"}, ["Beowulf", "Nana", "Germinal"]),
        ({"sort": "-availability"}, ["Nana", "Germinal", "Beowulf"]),
        ({"sort": "nothing"}, ["Beowulf", "Nana", "Germinal"]),
        ({"q": "9780140447422"}, ["Germinal"]),
    ],
)
def test_lists_are_filtered_and_sorted_by_their_address(
    librarian: Client, query: dict[str, Any], titles: list[str]
) -> None:
    assert list_titles(librarian, **query) == titles


def test_the_best_matches_of_a_search_come_first(librarian: Client) -> None:
    for title in ("Emma", "Dear Emma", "Emmaus"):
        create_book(title=title)
    assert list_titles(librarian, q="emma") == ["Emma", "Emmaus", "Dear Emma"]
    assert list_titles(librarian, q="emma", sort="title") == ["Dear Emma", "Emma", "Emmaus"]


@pytest.mark.parametrize("second", [{"isbn": "0140447423"}, {"title": "GERMINAL", "author": "émile zola"}])
def test_possible_duplicates_are_found(
    librarian: Client, second: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    create_book(title="Germinal", author="Émile Zola", isbn="978-0-14-044742-2")
    create_book(title="Nana", author="Émile Zola")
    create_book(**second)
    assert len(list_titles(librarian, quality="duplicates")) == 2
    assert len(list_titles(librarian, quality="same_isbn")) == (2 if "isbn" in second else 0)
    monkeypatch.setattr(quality, "NEWEST_BOOKS", 1)
    assert len(list_titles(librarian, quality="duplicates")) == 1


@pytest.mark.parametrize(
    ("year", "is_improbable"),
    [(1399, True), (1400, False), (2027, False), (2028, True)],
)
def test_years_between_1400_and_the_next_one_are_probable(year: int, is_improbable: bool) -> None:
    assert quality.is_probable_year(year, date(2026, 12, 31)) is not is_improbable


@pytest.mark.parametrize(
    "query",
    [
        {"year_from": "x"},
        {"year_to": "9" * 40},
        {"quality": "x"},
        {"availability": "x"},
        {"added_since": "x"},
        {"author": "\0"},
    ],
)
def test_an_invalid_filter_is_explained(librarian: Client, query: dict[str, str]) -> None:
    create_book(title="Emma")
    answer = librarian.get(LIST, query)
    assert 'class="errorlist"' in read_text(answer)
    assert [book.title for book in answer.context["cl"].result_list] == ["Emma"]


@pytest.mark.parametrize("query", ["view=x", "view=99", "behind=x", "before=%00", "last=1", "o=1", "sort=-", "q=%00"])
def test_odd_addresses_are_answered(librarian: Client, query: str) -> None:
    create_book()
    assert librarian.get(f"{LIST}?{query}").status_code == 200


@pytest.fixture
def two_rows(astrid: User) -> None:
    """Pages of two books."""
    ListSettings.objects.create(user=astrid, columns=["author"], rows=2)


@pytest.mark.usefixtures("two_rows")
def test_pages_go_to_the_end_and_keep_the_filters(librarian: Client) -> None:
    for number in range(5):
        create_book(title=f"Emma {number}")
    create_book(title="Persuasion")
    answer, titles = librarian.get(LIST, {"q": "emma", "sort": "title"}), []
    assert list(list_links(answer)) == ["Next page", "Last page"]
    while "Next page" in list_links(answer):
        titles += [book.title for book in answer.context["cl"].result_list]
        answer = librarian.get(list_links(answer)["Next page"])
    titles += [book.title for book in answer.context["cl"].result_list]
    assert titles == [f"Emma {number}" for number in range(5)]
    assert list(list_links(answer)) == ["First page", "Previous page"]
    first = librarian.get(list_links(answer)["First page"])
    last = librarian.get(list_links(first)["Last page"])
    assert [book.title for book in last.context["cl"].result_list] == ["Emma 3", "Emma 4"]


@pytest.mark.usefixtures("two_rows")
def test_queries_do_not_grow_with_the_books(librarian: Client) -> None:
    counts = []
    for _ in range(2):
        for _ in range(3):
            create_book()
        with CaptureQueriesContext(connection) as queries:
            librarian.get(LIST)
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.usefixtures("three_books")
def test_a_column_is_sorted_by_its_head_and_back(librarian: Client) -> None:
    header = list_headers(librarian.get(LIST, {"genre": "novel"}))["Year"]
    assert (header.address, header.direction) == ("?genre=novel&sort=year", "")
    answer = librarian.get(f"{LIST}{header.address}")
    header = list_headers(answer)["Year"]
    assert (header.address, header.direction) == ("?genre=novel&sort=-year", "ascending")
    assert 'aria-sort="ascending"' in read_text(answer)


@pytest.mark.usefixtures("three_books")
def test_columns_and_rows_are_chosen_and_remembered(librarian: Client) -> None:
    form = {"columns": ["year", "id"], "rows": 100, "query": "genre=novel&behind=x&o=1"}
    answer = librarian.post(COLUMNS, form)
    assert answer.headers["Location"] == f"{LIST}?genre=novel"
    changed = librarian.get(LIST)
    assert list(list_headers(changed)) == ["Title", "Year", "Number"]
    assert 'class="field-author_column"' not in read_text(changed)
    assert ListSettings.objects.get().rows == 100


@pytest.mark.parametrize("form", [{"columns": ["password"], "rows": 50}, {"columns": ["year"], "rows": 10_000}, {}])
def test_other_columns_and_rows_are_refused(librarian: Client, form: dict[str, Any]) -> None:
    assert "Nothing was changed" in read_text(librarian.post(COLUMNS, form, follow=True))
    assert not ListSettings.objects.exists()


@pytest.mark.usefixtures("three_books")
def test_a_view_is_saved_with_its_columns_and_comes_back(librarian: Client, astrid: User) -> None:
    ListSettings.objects.create(user=astrid, columns=["isbn"], rows=50)
    librarian.post(SAVE_VIEW, {"name": "Novels", "query": "genre=novel&sort=year&password=x"})
    ListSettings.objects.update(columns=["author"])
    [(view, query)] = librarian.get(LIST).context["saved_views"]
    assert (str(view), query) == ("Novels", f"genre=novel&sort=year&view={view.pk}")
    answer = librarian.get(f"{LIST}?{query}")
    assert [book.title for book in answer.context["cl"].result_list] == ["Nana", "Germinal"]
    assert list(list_headers(answer)) == ["Title", "ISBN"]


def test_a_view_with_the_same_name_is_replaced(librarian: Client) -> None:
    for query in ("genre=a", "genre=b"):
        librarian.post(SAVE_VIEW, {"name": "Mine", "query": query})
    assert SavedView.objects.get().query == "genre=b"


def test_views_are_named_and_not_endless(librarian: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "MAX_VIEWS", 1)
    assert "Nothing was saved" in read_text(librarian.post(SAVE_VIEW, {"name": " "}, follow=True))
    librarian.post(SAVE_VIEW, {"name": "One"})
    assert "Nothing was saved" in read_text(librarian.post(SAVE_VIEW, {"name": "Two"}, follow=True))
    assert SavedView.objects.count() == 1


def test_a_view_is_deleted(librarian: Client) -> None:
    librarian.post(SAVE_VIEW, {"name": "Mine"})
    librarian.post(DELETE_VIEW, {"view": SavedView.objects.get().pk})
    assert not SavedView.objects.exists()


def test_views_of_others_are_neither_shown_nor_deleted(librarian: Client) -> None:
    other = User.objects.create_user("other")
    view = SavedView.objects.create(user=other, name="Theirs", query="genre=a", columns=["isbn"])
    librarian.post(DELETE_VIEW, {"view": view.pk})
    answer = librarian.get(LIST, {"view": view.pk})
    assert answer.context["saved_views"] == []
    assert len(list_headers(answer)) > 2
    assert SavedView.objects.exists()


@pytest.mark.parametrize("address", [COLUMNS, SAVE_VIEW, DELETE_VIEW])
def test_a_list_that_one_may_not_see_is_not_set_up(db: None, client: Client, address: str) -> None:
    client.force_login(User.objects.create_user("visitor", is_staff=True))
    assert client.post(address).status_code == 403


def test_the_search_says_what_it_reads(librarian: Client) -> None:
    assert "An ISBN in any writing" in read_text(librarian.get(LIST))


def test_availability_is_a_word(librarian: Client) -> None:
    change_book(create_book(), available=False)
    assert '<span class="availability lent">lent</span>' in read_text(librarian.get(LIST))


def test_a_name_that_the_list_does_not_know_narrows_nothing_and_the_page_says_so(head: Client) -> None:
    """Otherwise an action takes more books than the address seems to choose."""
    create_book(title="Emma")
    query = "genr=Novel&q=emma&%3Cb%3E=1"
    mark = {"action": "mark_lent", "_selected_action": ["1"], "select_across": "1", "confirmed": "1"}
    for answer in (
        head.get(f"{LIST}?{query}", follow=True),
        head.post(f"{LIST}?{query}", mark, follow=True),
        head.get(f"{LIST}export/?{query}&format=csv", follow=True),
    ):
        assert answer.redirect_chain == [(f"{LIST}?q=emma", 302)]
        assert "shows the books without it: genr, &lt;b&gt;" in read_text(answer)
    refused = head.post(f"{LIST}bulk_edit/?{query}", {"change": "set", "genre": "Poetry"}, follow=True)
    assert "a filter of the list is not valid" in read_text(refused)
    assert not Operation.objects.exists()
    assert not Book.objects.filter(available=False).exists()


@pytest.mark.parametrize("query", ["q=e&author=a&sort=-year&view=1", "behind=x", "before=x", "last=1", "e=1"])
def test_what_the_list_knows_is_taken_without_a_word(librarian: Client, query: str) -> None:
    assert librarian.get(f"{LIST}?{query}").status_code == 200

"""The admin pages of books for librarians, as a browser meets them."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from books.admin.list import changelist
from books.admin.urls import URLS
from books.history.actors import record_operation
from books.models import Actor, Book, ListSettings, Summary
from books.writing import changes
from library_site.admin import paginator
from tests.support.admin_pages import read_text
from tests.support.books import ACTOR, build_book, build_isbn
from tests.support.books_admin import (
    ADD,
    LIST,
    RECENT_CHANGES,
    add_actor,
    build_form,
    change_book,
    create_book,
    delete_book,
    history_address,
    page_address,
)

ADDRESSES = {str(route.name): f"{LIST}{re.sub('<[^>]*>', '1', str(route.pattern))}" for route in URLS}
# Who began an operation sees it without a permission.
OF_OPERATIONS = {"operation", "operation_progress", "operation_cancel", "operation_undo"}
OF_THE_LIST = {"books_book_columns", *(f"books_book_{name}_view" for name in ("save", "delete", "default"))}
OF_IMPORTS = {name for name in ADDRESSES if name.startswith("import_books")}


def test_each_page_opens_to_who_may_do_what_it_does(db: None, client: Client, astrid: User) -> None:
    assert client.get(LIST).headers["Location"] == f"/admin/login/?next={LIST}"
    visitor, reader = (User.objects.create_user(name, is_staff=True) for name in ("visitor", "reader"))
    reader.user_permissions.add(Permission.objects.get(codename="view_book"))
    opened = []
    for person in (visitor, reader, astrid):
        client.force_login(person)
        opened.append({name for name, page in ADDRESSES.items() if client.get(page).status_code != 403})
        for page in (LIST, f"{LIST}1/history/"):
            assert (client.get(page).status_code == 403) is (person is visitor or (person is reader and page != LIST))
    assert opened == [
        OF_OPERATIONS,
        OF_OPERATIONS | OF_THE_LIST | {"scan", "genres", "export_books", "export_books_workbook"},
        ADDRESSES.keys() - OF_IMPORTS - {"bulk_edit", "duplicates", "merge"},
    ]


def test_a_librarian_changes_a_book(librarian: Client) -> None:
    book = create_book()
    librarian.post(page_address(book), build_form(book, title="Emma", available=""))
    changed_book = Book.objects.values_list("title", "title_folded", "available", "version").get(pk=book.pk)
    assert changed_book == ("Emma", "emma", False, 2)


def test_a_form_keeps_the_changes_of_others_to_other_fields(librarian: Client) -> None:
    book = create_book()
    form = build_form(book, title="Emma")
    change_book(book, genre="Romance")
    librarian.post(page_address(book), form)
    changed_book = Book.objects.get(pk=book.pk)
    assert (changed_book.title, changed_book.genre) == ("Emma", "Romance")


def test_a_line_break_that_an_input_cannot_show_is_kept(librarian: Client) -> None:
    book = create_book(title="a\nb")
    librarian.post(page_address(book), build_form(book, year=1900) | {"title": "ab", "initial-title": "a\r\nb"})
    changed_book = Book.objects.get(pk=book.pk)
    assert (changed_book.title, changed_book.year) == ("a\nb", 1900)


def test_the_page_has_the_initial_value_of_every_field(librarian: Client) -> None:
    """The availability has a button of its own. Only a new book and an earlier state have the field, too."""
    book = create_book()
    fields = {f"initial-{name}" for name in build_book()}
    for address, others in (
        (page_address(book), set[str]()),
        (f"{page_address(book)}?state=1", {"initial-available"}),
        (ADD, {"initial-available"}),
    ):
        html = librarian.get(address).content.decode()
        assert set(re.findall(r'name="(initial-\w+)"', html)) == fields | others, address


def test_an_isbn_in_use_is_explained(librarian: Client) -> None:
    book = create_book()
    response = librarian.post(ADD, build_book(isbn=book.isbn))
    link = f'<a href="{page_address(book)}">Pride and Prejudice</a> has this ISBN.'
    assert response.context["adminform"].form.errors == {"isbn": [link]}
    assert link in response.content.decode()


def test_the_page_of_a_book_has_its_title_and_its_state_and_its_last_changes(librarian: Client) -> None:
    book = create_book(title="Emma & I", year=1816)
    for year in (1815, 1814, 1813):
        book.refresh_from_db()
        change_book(book, year=year)
    response = librarian.get(page_address(book))
    page = read_text(response)
    assert "<h1>Emma &amp; I</h1>" in page
    assert '<span class="badge good">available</span>' in page
    assert ["<dt>Added</dt>" in text for text in (page, read_text(librarian.get(ADD)))] == [True, False]
    assert [change.lines[0].right for change in response.context["last_changes"]] == ["1813", "1814", "1815"]


def test_a_book_is_lent_and_taken_back_on_its_page(librarian: Client) -> None:
    book = create_book()
    lend = f"{LIST}{book.pk}/lend/"
    for state, available in (("lent", False), ("available", True)):
        form = {"version": Book.objects.get().version, "state": state}
        page = librarian.post(lend, form, follow=True)
        assert page.redirect_chain == [(page_address(book), 302)]
        assert Book.objects.get().available is available
    for odd_form in ({}, {"version": "x", "state": "lent"}, {"version": 1, "state": "sold"}):
        assert "this is not known." in read_text(librarian.post(lend, odd_form, follow=True))
    assert librarian.get(lend).status_code == 405


def test_a_book_that_someone_changed_meanwhile_is_not_lent(librarian: Client) -> None:
    book = create_book()
    change_book(book, year=1)
    page = librarian.post(f"{LIST}{book.pk}/lend/", {"version": 1, "state": "lent"}, follow=True)
    assert "The book was changed since it was looked up" in read_text(page)
    assert Book.objects.get().available


def test_who_saves_stays_on_the_book(librarian: Client) -> None:
    response = librarian.post(ADD, {**build_book(isbn=build_isbn(1)), "available": "on"})
    book = Book.objects.get()
    assert response["Location"] == page_address(book)
    assert librarian.post(page_address(book), build_form(book, year=1999))["Location"] == page_address(book)
    another = {**build_form(book, genre="Poem"), "_addanother": "1"}
    assert librarian.post(page_address(book), another)["Location"] == ADD
    page = read_text(librarian.get(page_address(book)))
    assert "_continue" not in page


def test_a_book_leads_back_to_its_list_and_to_its_neighbours_there(librarian: Client) -> None:
    first, book, last = (create_book(genre="Poetry", title=title) for title in "ABC")
    create_book(title="B", genre="Novel")
    for query in ("genre=Poetry&sort=title", "q=poetry&sort=title"):
        page = read_text(librarian.get(f"{LIST}?{query}"))
        [link] = re.findall(f'href="({book.pk}/change/[^"]*)"', page)
        assert f'<tr id="book-{book.pk}">' in page
        address, _, origin = f"{LIST}{link}".partition("?")
        page = read_text(librarian.get(f"{address}?{origin}"))
        links = {
            word: href for href, word in re.findall('<a [^>]*href="([^"]*)"[^>]*>(Previous|Next|Books|Delete)<', page)
        }
        assert links["Books"].endswith(f"?{query.replace('&', '&amp;')}")
        assert [links["Previous"], links["Next"]] == [f"{page_address(one)}?{origin}" for one in (first, last)]
        assert links["Delete"].endswith(f"?{origin}")
        form = build_form(book)
        for button, location in (
            ("_save", f"{LIST}?{query}#book-{book.pk}"),
            ("_continue", f"{address}?{origin}"),
            ("_next", f"{page_address(last)}?{origin}"),
        ):
            response = librarian.post(f"{address}?{origin}", {**form, button: str(last.pk)})
            assert response["Location"] == location
        lent = librarian.post(f"{LIST}{book.pk}/lend/?{origin}", {"version": "1", "state": "sold"})
        assert lent["Location"] == f"{address}?{origin}"
    assert "?_changelist_filters=all%3D1" in read_text(librarian.get(LIST))


@pytest.fixture
def large_library(librarian: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library with more books than the admin counts."""
    monkeypatch.setattr(paginator, "MAX_COUNT", 60)
    monkeypatch.setattr(changelist, "MAX_LISTED_COUNT", 60)
    changes.create_books([build_book() for _ in range(61)], ACTOR, now=timezone.now())


@pytest.mark.usefixtures("large_library")
def test_a_large_library_is_counted_up_to_a_limit(librarian: Client) -> None:
    librarian.get(LIST)
    Summary.objects.update(seconds=1)
    with CaptureQueriesContext(connection) as queries:
        filters: list[dict[str, Any]] = [{}, {"availability": "available"}, {"year_to": "9999"}]
        every, chosen, narrowed = (read_text(librarian.get(LIST, query)) for query in filters)
    assert not any("COUNT(*)" in query["sql"] for query in queries if "books_book" in query["sql"])
    # A choice of a menu has the number that the menu shows.
    assert ["<h1>Books (61)</h1>" in page for page in (every, chosen, narrowed)] == [True, True, False]
    assert ["counted" in every, "counted" in chosen, "over 60 books" in narrowed] == [True] * 3


@pytest.mark.usefixtures("large_library")
def test_a_large_list_is_counted_for_who_asks(librarian: Client) -> None:
    response = librarian.get(LIST, {"availability": "available", "year_to": "9999"})
    assert response.context["cl"].page_count is None
    counted = librarian.get(f"{LIST}{response.context['cl'].exact_address}")
    assert "<h1>Books (61)</h1>" in counted.content.decode()
    assert counted.context["cl"].page_count == 2


def test_no_page_takes_more_queries_for_more_books_and_changes(librarian: Client, astrid: User) -> None:
    ListSettings.objects.create(user=astrid, columns=["author"], rows=2)
    book = create_book(title="Emma")
    pages = ["/admin/", LIST, f"{LIST}scan/?code=emma", RECENT_CHANGES, history_address(book)]
    counts: dict[str, list[int]] = {page: [] for page in pages}
    for year in (1, 2, 3):
        operation = record_operation("bulk", add_actor(Actor.Channel.BULK, user_name=f"user {year}"), timezone.now())
        change_book(book, actor=operation, year=year)
        delete_book(create_book(actor=add_actor(Actor.Channel.V2, user_name=f"user {year}")))
        for _ in range(3):
            create_book(title="Emma")
        for page in pages:
            with CaptureQueriesContext(connection) as queries:
                librarian.get(page)
            counts[page].append(len(queries))
            is_history = page in (RECENT_CHANGES, history_address(book))
            assert not [query["sql"] for query in queries if is_history and "COUNT(" in query["sql"]]
    assert {page: numbers for page, numbers in counts.items() if numbers[2] > numbers[1]} == {}

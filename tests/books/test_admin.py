"""The librarians' desk, as a browser meets it."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from books import changes
from books.models import Book
from library_site.admin import base, paginator
from tests.support.books import new_book
from tests.support.serving import Service, manage

LIST = "/admin/books/book/"
ADD = "/admin/books/book/add/"


@pytest.fixture
def librarian(db: None, client: Client) -> Client:
    """A browser in which a member of the group Librarians is signed in."""
    user = User.objects.create_user("astrid", password="x", is_staff=True)
    user.groups.add(Group.objects.get(name="Librarians"))
    client.force_login(user)
    return client


def stored(**members: Any) -> Book:
    return changes.add_book(new_book(**members), now=timezone.now())


def form(book: Book, **changed: Any) -> dict[str, Any]:
    """What a browser sends that was shown this book: each member, beside it what was shown, and the changes."""
    shown = {name: getattr(book, name) for name in new_book()} | ({"available": "on"} if book.available else {})
    return {**shown, **{f"initial-{name}": value for name, value in shown.items()}, **changed}


def page(book: Book) -> str:
    return f"{LIST}{book.pk}/change/"


def titles(answer: Any) -> list[str]:
    return [book.title for book in answer.context["cl"].result_list]


def test_staff_outside_the_group_sees_no_books(db: None, client: Client) -> None:
    client.force_login(User.objects.create_user("visitor", is_staff=True))
    assert client.get(LIST).status_code == 403


def test_strangers_are_asked_to_sign_in(db: None, client: Client) -> None:
    assert client.get(LIST).headers["Location"] == f"/admin/login/?next={LIST}"


def test_a_librarian_adds_a_book(librarian: Client) -> None:
    librarian.post(ADD, {**new_book(isbn="new"), "available": "on"})
    added = Book.objects.get(isbn="new")
    assert (added.title, added.available, added.version) == ("Pride and Prejudice", True, 1)
    assert added.author_folded == "jane austen"


def test_a_librarian_changes_a_book(librarian: Client) -> None:
    book = stored()
    librarian.post(page(book), form(book, title="Emma", available=""))
    changed = Book.objects.get(pk=book.pk)
    assert (changed.title, changed.title_folded, changed.available, changed.version) == ("Emma", "emma", False, 2)


def test_what_someone_else_changed_meanwhile_stays(librarian: Client) -> None:
    shown = stored()
    sent = form(shown, title="Emma")
    changes.apply_change(changes.lock_book(shown.pk), {"genre": "Romance"}, now=timezone.now())
    librarian.post(page(shown), sent)
    changed = Book.objects.get(pk=shown.pk)
    assert (changed.title, changed.genre) == ("Emma", "Romance")


def test_what_a_one_line_input_cannot_show_stays(librarian: Client) -> None:
    book = stored(title="a\nb")
    librarian.post(page(book), form(book, year=1900) | {"title": "ab", "initial-title": "a\r\nb"})
    changed = Book.objects.get(pk=book.pk)
    assert (changed.title, changed.year) == ("a\nb", 1900)


def test_the_page_shows_what_form_sends_back(librarian: Client) -> None:
    book = stored()
    html = librarian.get(page(book)).content.decode()
    assert set(re.findall(r'name="(initial-\w+)"', html)) == {f"initial-{name}" for name in (*new_book(), "available")}


@pytest.mark.parametrize("member", ["title", "author", "isbn", "genre"])
def test_blank_members_are_refused(librarian: Client, member: str) -> None:
    answer = librarian.post(ADD, new_book(**{member: "  "}))
    assert answer.context["adminform"].form.errors == {member: ["This field is required."]}


def test_an_isbn_in_use_is_explained(librarian: Client) -> None:
    book = stored()
    answer = librarian.post(ADD, new_book(isbn=book.isbn))
    assert answer.context["adminform"].form.errors == {"isbn": ["Another book has this ISBN."]}


@pytest.mark.parametrize("year", ["-2147483649", "2147483648", "9" * 5000])
def test_a_year_out_of_bounds_is_explained(librarian: Client, year: str) -> None:
    answer = librarian.post(ADD, new_book(year=year))
    assert list(answer.context["adminform"].form.errors) == ["year"]


def test_a_librarian_deletes_a_book(librarian: Client) -> None:
    book = stored()
    librarian.post(f"{LIST}{book.pk}/delete/", {"post": "yes"})
    assert not Book.objects.exists()


def test_a_librarian_deletes_selected_books(librarian: Client) -> None:
    kept, *gone = stored(), stored(), stored()
    selected = [book.pk for book in gone]
    librarian.post(LIST, {"action": "delete_selected", "_selected_action": selected, "post": "yes"})
    assert list(Book.objects.all()) == [kept]


@pytest.mark.parametrize(("action", "available"), [("mark_lent", False), ("mark_available", True)])
def test_a_librarian_marks_selected_books(librarian: Client, action: str, available: bool) -> None:
    other, marked, already = stored(), stored(), stored()
    changes.apply_change(already, {"available": available}, now=timezone.now())
    changes.apply_change(marked, {"available": not available}, now=timezone.now())
    versions = {book.pk: book.version for book in (other, marked, already)}
    answer = librarian.post(LIST, {"action": action, "_selected_action": [marked.pk, already.pk]}, follow=True)
    assert f"Books now {'available' if available else 'lent'}: 1." in answer.content.decode()
    assert Book.objects.get(pk=marked.pk).available is available
    raised = {book.pk: book.version - versions[book.pk] for book in Book.objects.all()}
    assert raised == {other.pk: 0, marked.pk: 1, already.pk: 0}


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("ÉMILE", ["Germinal"]),
        ("zola germ", ["Germinal"]),
        ("austen germinal", []),
        ("97814", ["Emma"]),
        ("100%", ["100% Poetry"]),
        ("%", ["100% Poetry"]),
    ],
)
def test_every_word_of_a_search_is_found_somewhere(librarian: Client, search: str, found: list[str]) -> None:
    stored(title="Germinal", author="Émile Zola")
    stored(title="Emma", isbn="9781400000000")
    stored(title="100% Poetry")
    assert titles(librarian.get(LIST, {"q": search})) == found


def test_lists_sort_by_folded_titles(librarian: Client) -> None:
    for title in ("emma", "Émile", "Zadig", "Dubliners"):
        stored(title=title)
    assert titles(librarian.get(LIST, {"o": "1"})) == ["Dubliners", "emma", "Zadig", "Émile"]
    assert titles(librarian.get(LIST, {"o": "-1"})) == ["Émile", "Zadig", "emma", "Dubliners"]


def test_lent_books_can_be_filtered(librarian: Client) -> None:
    stored(title="There")
    changes.apply_change(stored(title="Lent"), {"available": False}, now=timezone.now())
    assert titles(librarian.get(LIST, {"available__exact": "0"})) == ["Lent"]


def test_books_added_today_can_be_filtered(librarian: Client) -> None:
    stored(title="Today")
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    assert titles(librarian.get(LIST, {"created_at__gte": today.isoformat(sep=" ")})) == ["Today"]


@pytest.fixture
def large(librarian: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library of more books than are counted."""
    for module in (base, paginator):
        monkeypatch.setattr(module, "MAX_COUNT", 1_000)
    changes.add_books([new_book() for _ in range(1_001)], now=timezone.now())


@pytest.mark.usefixtures("large")
def test_a_large_library_is_never_counted(librarian: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        answer = librarian.get(LIST)
    counts = [query["sql"] for query in queries if "COUNT(*)" in query["sql"]]
    assert len(counts) == 1
    assert "LIMIT 1001" in counts[0]
    assert "over 1,000 books" in answer.content.decode()


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("across", ["1", "01", "yes"])
def test_a_whole_library_is_not_deleted_by_a_click(librarian: Client, across: str) -> None:
    click = {"action": ["delete_selected", ""], "index": 0, "select_across": across, "_selected_action": [1]}
    answer = librarian.post(LIST, click, follow=True)
    assert "Nothing was deleted: select 1,000 at most." in answer.content.decode()


def test_of_many_librarians_adding_one_isbn_one_does(service: Service) -> None:
    environment = {**os.environ, "DATABASE_URL": service.database_url, "DJANGO_SUPERUSER_PASSWORD": "a-long-phrase-1"}
    manage(environment, "createsuperuser", "--noinput", "--username", "root", "--email", "root@example.org")
    gate = Barrier(6)

    def add(number: int) -> httpx.Response:
        with service.client() as browser:
            login = {"username": "root", "password": "a-long-phrase-1"}
            submitted(browser, "/admin/login/", login)
            page = browser.get(ADD).text
            gate.wait()
            return browser.post(ADD, data={**new_book(isbn="raced"), **csrf(page)}, follow_redirects=True)

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(add, range(6)))
    assert {answer.status_code for answer in answers} == {200}
    assert sum("was added successfully" in answer.text for answer in answers) == 1


def submitted(browser: httpx.Client, address: str, values: dict[str, str]) -> httpx.Response:
    return browser.post(address, data={**values, **csrf(browser.get(address).text)})


def csrf(html: str) -> dict[str, str]:
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', html)
    assert token
    return {"csrfmiddlewaretoken": token[1]}

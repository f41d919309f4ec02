"""The first page of the admin: the scan box, what changed last and by whom, and what should be looked at."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from books.models import Book
from library_site.admin import paginator
from tests.support.admin_pages import read_text
from tests.support.books import build_book, build_isbn
from tests.support.books_admin import ADD, LIST, create_book

INDEX = "/admin/"


def list_counts(answer: Any) -> dict[str, int]:
    return {count.address: count.books for count in answer.context["counts"]}


def test_the_scan_box_is_there_and_has_the_focus(librarian: Client) -> None:
    page = read_text(librarian.get(INDEX))
    [box] = [line for line in page.splitlines() if 'name="code"' in line]
    assert "autofocus" in box
    assert page.count("autofocus") == 1


def test_the_box_leads_to_lending(librarian: Client) -> None:
    assert '<a href="/admin/books/book/lend/">' in read_text(librarian.get(INDEX))


def test_the_last_changes_name_the_book_and_the_person(librarian: Client) -> None:
    librarian.post(ADD, build_book(title="Emma & I", isbn=build_isbn(1), available="on"))
    page = read_text(librarian.get(INDEX))
    assert f'<a href="{LIST}{Book.objects.get().pk}/history/">Emma &amp; I</a>' in page
    assert "astrid</a>" in page


def test_each_count_is_that_of_the_list_it_leads_to(librarian: Client) -> None:
    for members in ({"isbn": "0141439513"}, {"isbn": "9780141439518", "title": "Same"}, {"year": 1}, {"title": "Emma"}):
        create_book(**members)
    counts = list_counts(librarian.get(INDEX))
    assert counts == {
        f"{LIST}?quality={name}": count for name, count in {"no_isbn": 2, "year": 1, "duplicates": 3}.items()
    }
    for address, count in counts.items():
        assert librarian.get(address).context["cl"].result_count == count


def test_counts_stop(librarian: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paginator, "MAX_COUNT", 1)
    for _ in range(2):
        create_book()
    assert "<strong>over 1</strong> no valid ISBN" in read_text(librarian.get(INDEX))


def test_queries_do_not_grow_with_the_changes(librarian: Client) -> None:
    counts = []
    for _ in range(2):
        for _ in range(3):
            create_book()
        with CaptureQueriesContext(connection) as queries:
            librarian.get(INDEX)
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("permissions", "shown"),
    [([], [False, False]), (["view_book"], [True, False]), (["view_history"], [False, True])],
)
def test_everybody_sees_what_they_may_see(db: None, client: Client, permissions: list[str], shown: list[bool]) -> None:
    person = User.objects.create_user("person", is_staff=True)
    person.user_permissions.add(*Permission.objects.filter(codename__in=permissions))
    client.force_login(person)
    page = read_text(client.get(INDEX))
    assert ["To look at" in page, "What changed last" in page] == shown
    assert ('name="code"' in page) is shown[0]

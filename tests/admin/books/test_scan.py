"""The scan box: what is typed or scanned into it opens a book, lists books, or offers to add one."""

from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client

from books.admin.lending import MAX_NUMBERED_BOOKS
from tests.support.admin_pages import read_text
from tests.support.books_admin import LIST, create_book, page_address

SCAN = "/admin/books/book/scan/"
ISBN = "978-0-14-143951-8"


def scan(client: Client, code: str) -> Any:
    return client.get(SCAN, {"code": code})


def test_the_box_is_focused_and_has_what_was_not_found(librarian: Client) -> None:
    page = read_text(scan(librarian, "nothing at all"))
    [box] = [line for line in page.splitlines() if 'name="code"' in line]
    assert "autofocus" in box
    assert 'value="nothing at all"' in box


def test_the_only_match_opens(librarian: Client) -> None:
    book = create_book(title="Emma", isbn=ISBN)
    create_book(title="Persuasion")
    for code in ("0141439513", "emma", f"#{book.pk}"):
        assert scan(librarian, code).headers["Location"] == page_address(book), code


def test_several_matches_are_numbered_and_the_best_is_first(librarian: Client) -> None:
    for title in ("Dear Emma", "Emma"):
        create_book(title=title)
    response = scan(librarian, "emma")
    assert [book.title for book in response.context["books"]] == ["Emma", "Dear Emma"]
    assert [f'data-digit="{digit}"' in read_text(response) for digit in (1, 2, 3)] == [True, True, False]


def test_more_matches_than_digits_are_in_the_list(librarian: Client) -> None:
    for _ in range(MAX_NUMBERED_BOOKS + 1):
        create_book(title="Emma & I")
    response = scan(librarian, "emma & i")
    assert len(response.context["books"]) == MAX_NUMBERED_BOOKS
    assert f'<a href="{LIST}?q=emma+%26+i">' in read_text(response)


def test_an_unknown_isbn_is_offered_to_be_added(librarian: Client) -> None:
    response = scan(librarian, "9780141439518")
    add_address = f"{LIST}add/?isbn={ISBN}"
    assert f'href="{add_address}"' in read_text(response)
    assert f'href="{LIST}add/?title=Emma+Brown"' in read_text(scan(librarian, "Emma Brown"))
    assert f'value="{ISBN}"' in read_text(librarian.get(add_address))


def test_what_is_no_new_book_is_explained_and_not_added(librarian: Client) -> None:
    explanations = {
        "9780141439519": "In this ISBN a digit is wrong",
        "9790260000438": "the code of printed music",
        "#17": "No book has the ID 17",
    }
    for code, explanation in explanations.items():
        page = read_text(scan(librarian, code))
        assert (explanation in page, "Add this book" in page) == (True, False), code
    for code in ("\0", "9" * 5000, "word " * 500, "%"):
        assert scan(librarian, code).status_code == 200, code


def test_who_may_not_add_books_is_not_offered_to(db: None, client: Client) -> None:
    reader = User.objects.create_user("reader", is_staff=True)
    reader.user_permissions.add(Permission.objects.get(codename="view_book"))
    client.force_login(reader)
    assert "Add this book" not in read_text(scan(client, "9780141439518"))


def test_a_code_through_another_keyboard_layout_opens_its_book_and_is_explained(librarian: Client) -> None:
    create_book(isbn=ISBN)
    page = read_text(librarian.get(SCAN, {"code": "çè_à&'&'\"ç(&_"}, follow=True))
    assert "keyboard layout “French”" in page
    assert f'value="{ISBN}"' in page

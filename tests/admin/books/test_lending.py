"""Lending: a code names a book, a request names the state and the version that was seen."""

from typing import Any

from django.test import Client

from books.admin.lending import MAX_NAMED_BOOKS
from books.history.change_pages import read_book_page
from books.models import Book
from library_site.db.keyset import Start
from tests.support.admin_pages import read_inputs, read_text, read_words
from tests.support.books_admin import change_book, create_book, delete_book

LEND = "/admin/books/book/lend/"
FIND = f"{LEND}find/"
CHANGE = f"{LEND}change/"
ISBN = "978-0-14-143951-8"


def find(client: Client, code: str) -> Any:
    response: Any = client.get(FIND, {"code": code})
    assert response.status_code == 200
    return response.json()


def set_state(client: Client, book: Book, state: str, **fields: Any) -> Any:
    return client.post(CHANGE, {"book": book.pk, "version": 1, "state": state, **fields})


def scan(client: Client, code: str, state: str = "lent") -> Any:
    """Submits the form of the page as a browser without scripts."""
    return client.post(LEND, {"code": code, "state": state}, follow=True)


def read_state(book: Book) -> tuple[bool, int]:
    """Returns whether the book is available, and its version."""
    return Book.objects.values_list("available", "version").get(pk=book.pk)


def test_a_code_stands_for_its_book(librarian: Client) -> None:
    book, other = create_book(title="Emma", isbn=ISBN), create_book(isbn="LIB-0001")
    address = f"/admin/books/book/{book.pk}/change/"
    found = {"id": book.pk, "title": "Emma", "address": address, "state": "available", "version": 1}
    for code in ("0141439513", "çè_à&'&'\"ç(&_"):
        assert find(librarian, code)["book"] == found, code
    for code in (f"#{other.pk}", "LIB-0001"):
        assert find(librarian, code)["book"]["id"] == other.pk, code


def test_other_codes_are_explained(librarian: Client) -> None:
    create_book(title="Emma")
    messages = {
        "Emma": "Words lend no book",
        "9780141439519": "In this ISBN a digit is wrong",
        "#" + "9" * 30: "No book has the ID",
        "\0": "Scan a code first",
    }
    for code, message in messages.items():
        response = find(librarian, code)
        assert (message in response["message"], response["book"], response["add"]) == (True, None, None), code
    unknown = {"book": None, "message": f"No book has the ISBN {ISBN}.", "add": f"/admin/books/book/add/?isbn={ISBN}"}
    assert find(librarian, "9780141439518") == unknown


def test_several_books_with_one_code_are_named_and_none_is_lent(librarian: Client) -> None:
    books = [create_book(isbn=isbn) for isbn in (ISBN, "0-14-143951-3", "9780141439518")]
    response = find(librarian, ISBN)
    assert response["book"] is None
    assert all(f"#{book.pk} Pride and Prejudice (available)" in response["message"] for book in books)
    assert len(books) < MAX_NAMED_BOOKS


def test_a_lent_book_has_one_more_version_of_this_person(librarian: Client) -> None:
    book = create_book()
    response = set_state(librarian, book, "lent")
    assert (response.status_code, response.json()) == (200, {"version": 2})
    assert read_state(book) == (False, 2)
    entry = read_book_page(book.pk, Start(), 10).rows[0]
    assert (entry.version, entry.before, entry.after) == (2, {"available": True}, {"available": False})
    assert (entry.actor.channel, entry.actor.user) == ("admin", "astrid")


def test_a_request_that_is_sent_again_gets_the_same_response_and_changes_nothing(librarian: Client) -> None:
    book = create_book()
    assert set_state(librarian, book, "lent", repeated="on").json() == {"version": 2}
    change_book(book, available=True)
    assert set_state(librarian, book, "lent", repeated="on").json() == {"version": 2}
    assert read_state(book) == (True, 3)


def test_a_new_request_about_an_earlier_version_is_refused(librarian: Client) -> None:
    book = create_book()
    set_state(librarian, book, "lent")
    change_book(book, available=True)
    for fields in ({}, {"version": 2, "repeated": "on"}):
        assert set_state(librarian, book, "lent", **fields).status_code == 412
    assert read_state(book) == (True, 3)


def test_a_book_that_someone_else_changed_or_deleted_is_not_changed(librarian: Client) -> None:
    for values in ({"title": "Emma"}, {"available": False}):
        book = create_book()
        change_book(book, **values)
        assert set_state(librarian, book, "lent", repeated="on").status_code == 412
        assert read_state(book)[1] == 2
    delete_book(book)
    assert set_state(librarian, book, "lent").status_code == 404


def test_a_request_that_is_not_valid_is_refused(librarian: Client) -> None:
    for form in (
        {},
        {"book": "1", "version": "1", "state": "toggle"},
        {"book": "9" * 30, "version": "1", "state": "lent"},
        {"book": "1", "version": str(2**31), "state": "lent"},
        {"book": "\0", "version": "0", "state": "lent"},
    ):
        assert librarian.post(CHANGE, form).status_code == 400, form
        assert librarian.post(LEND, {**form, "book": form.get("book", "")}).status_code == 302, form
    assert (librarian.post(FIND).status_code, librarian.get(CHANGE).status_code) == (405, 405)


def test_the_form_lends_takes_back_and_undoes_without_a_script(librarian: Client) -> None:
    book = create_book(title="Emma", isbn=ISBN)
    page = scan(librarian, ISBN)
    assert read_state(book) == (False, 2)
    assert "Emma was available, is now lent" in read_words(page)
    librarian.post(LEND, read_inputs(read_text(page).partition('id="lending-last"')[2]))
    assert read_state(book) == (True, 3)
    scan(librarian, ISBN)
    assert "Emma was lent, is now available" in read_words(scan(librarian, ISBN, "available"))
    assert read_state(book) == (True, 5)


def test_the_form_says_why_nothing_was_changed(librarian: Client) -> None:
    book = create_book(title="Emma", isbn=ISBN)
    assert "“Emma” is available already." in read_words(scan(librarian, ISBN, "available"))
    page = scan(librarian, "Emma", "available")
    assert "Words lend no book" in read_words(page)
    # It keeps what scans do.
    [radio] = [line for line in read_text(page).splitlines() if 'value="available"' in line]
    assert " checked" in radio
    assert "choose whether to lend" in read_words(scan(librarian, ISBN, "toggle"))
    assert read_state(book) == (True, 1)


def test_the_page_shows_changes_of_this_person_only(librarian: Client) -> None:
    book = create_book(title="Emma")
    change_book(book, available=False)
    for query in ({"book": book.pk, "version": 2}, {"book": "\0", "version": "x"}, {"book": 10**30, "version": 1}):
        assert "Emma" not in read_text(librarian.get(LEND, query))

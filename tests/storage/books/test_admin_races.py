"""Many librarians who send the same form at once, to the served library."""

from tests.support.books import build_book, build_isbn
from tests.support.books_admin import ADD, LIST, submit_concurrently
from tests.support.server import Service


def test_only_one_of_many_librarians_adds_the_same_isbn(service: Service) -> None:
    form = {**build_book(isbn=build_isbn(1_000_000), title="Raced"), "available": "on"}
    responses = submit_concurrently(service, ADD, [form] * 6)
    assert {response.status_code for response in responses} == {200}
    assert sum("was added successfully" in response.text for response in responses) == 1


def test_only_one_of_many_librarians_saves_without_a_question(service: Service) -> None:
    [(pk,)] = service.fetch_all("SELECT max(id) FROM books_book")
    forms = [{"title": f"Title {number}"} for number in range(6)]
    responses = submit_concurrently(service, f"{LIST}{pk}/change/", forms)
    assert sum("Saved." in response.text for response in responses) == 1
    assert sum("Nothing is saved yet" in response.text for response in responses) == 5

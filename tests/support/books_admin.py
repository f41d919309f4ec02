"""The addresses and forms of the admin pages of books, and their submission."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import httpx
from django.utils import timezone

from books.history.actors import ActorRef, get_or_create_actor
from books.models import Actor, Book
from books.writing import changes
from tests.support.admin_pages import read_inputs
from tests.support.books import build_book
from tests.support.concurrency import run_concurrently
from tests.support.server import Service, run_in_shell

LIST = "/admin/books/book/"
ADD = "/admin/books/book/add/"
RECENT_CHANGES = "/admin/books/book/changes/"
DELETED_BOOKS = "/admin/books/book/deleted/"


def create_book(actor: ActorRef | None = None, **fields: Any) -> Book:
    values = build_book(**fields)
    return Book.objects.get(pk=changes.create_book(values, actor or find_anybody(), now=timezone.now()).id)


def change_book(book: Book, actor: ActorRef | None = None, **values: Any) -> None:
    """Changes a book as someone else, who is not signed in to the admin."""
    changes.change_book(book.pk, values, None, actor or find_anybody(), now=timezone.now())


def delete_book(book: Book, actor: ActorRef | None = None) -> None:
    changes.delete_book(book.pk, None, actor or find_anybody(), timezone.now())


def find_anybody() -> ActorRef:
    return get_or_create_actor(Actor.Channel.COMMAND)


def add_actor(channel: Actor.Channel, **names: str) -> ActorRef:
    return ActorRef(Actor.objects.create(channel=channel, identity=f"{channel} {names}", **names).pk)


def build_form(book: Book, **changes: Any) -> dict[str, Any]:
    """The form that a browser sends after it showed this book: the fields, the initial values, and the changes."""
    values = {name: getattr(book, name) for name in build_book()} | ({"available": "on"} if book.available else {})
    return {**values, **{f"initial-{name}": value for name, value in values.items()}, **changes}


def page_address(book: Book) -> str:
    return f"{LIST}{book.pk}/change/"


def submit_concurrently(service: Service, address: str, forms: Iterable[Mapping[str, str]]) -> list[httpx.Response]:
    """Opens a page as a superuser, and submits it with each of these values at the same moment."""
    code = f"from tests.support.admin_pages import create_session; print(create_session('root of {address}'))"
    cookies = {"sessionid": run_in_shell(service.database_url, code).strip()}
    with service.open_client() as browser:
        browser.cookies.update(cookies)
        shown = read_inputs(browser.get(address).text)
        cookies = dict(browser.cookies)

    def submit(form: Mapping[str, str], client: httpx.Client) -> httpx.Response:
        client.cookies.update(cookies)
        return client.post(address, data={**shown, **form}, follow_redirects=True)

    return run_concurrently(service, [partial(submit, form) for form in forms])


def history_address(book: Book) -> str:
    return f"{LIST}{book.pk}/history/"


def list_entries(response: Any) -> list[tuple[str, int]]:
    """Returns the title of the book and the version of each change that a page shows."""
    return [(change.book.text, change.entry.version) for change in response.context["changes"]]


def list_versions(response: Any) -> list[int]:
    """Returns the versions that the history of a book shows."""
    return [change.entry.version for change, gap in response.context["changes"]]

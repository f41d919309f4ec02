"""Middleware of others: all its hooks run, also for requests that the compiled path could answer."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from django.http import HttpRequest, HttpResponse
from pytest_django import Settings

from tests.support.applications import open_client
from tests.support.oauth_flows import create_key_header, create_user

MODULE = __name__
GetResponse = Callable[[HttpRequest], HttpResponse]


class Middleware:
    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)


class Teapot(Middleware):
    """Answers for one route."""

    def process_view(self, request: HttpRequest, *_: Any) -> HttpResponse | None:
        match = request.resolver_match
        return HttpResponse(b"short and stout", status=418) if match and match.url_name == "book" else None


class Nurse(Middleware):
    """Answers what no view could."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse:
        return HttpResponse(f"{type(error).__name__}: {error}".encode(), status=503)


class Witness(Middleware):
    """Tells what the credential of a request may do."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response, credential = self.get_response(request), vars(request)["auth"]
        response["X-Rights"] = " ".join([*sorted(credential.scopes), *credential.permissions])
        return response


@pytest.fixture
def install(api: httpx.Client, settings: Settings) -> Iterator[Callable[..., Any]]:
    """Returns a function that builds a client of an application with this middleware."""
    clients: list[httpx.Client] = []

    def install(*middleware: Callable[..., Any]) -> httpx.Client:
        names = [f"{MODULE}.{item.__name__}" for item in middleware]
        settings.MIDDLEWARE = [*settings.MIDDLEWARE, *names]
        clients.append(open_client())
        return clients[-1]

    yield install
    for client in clients:
        client.close()


Install = Callable[..., httpx.Client]


def test_process_exception_answers_a_failure(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise LookupError("no room")

    client = install(Nurse)
    monkeypatch.setattr("library_site.api.viewsets.APIViewSet.initial", fail)
    assert (client.get("/api/books").status_code, client.get("/api/books").text) == (503, "LookupError: no room")


@pytest.mark.parametrize("address", ["/api/books", "/api/v2/books"])
def test_it_sees_all_that_the_key_of_a_read_may_do(install: Install, address: str) -> None:
    key = create_key_header(create_user("ann", ["books.change_book"]))
    assert install(Witness).get(address, headers=key).headers["X-Rights"] == "read write books.change_book"

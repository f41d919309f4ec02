"""Middleware of others in API_MIDDLEWARE: all its hooks run, also for requests that the compiled path could answer."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from django.conf import settings as django_settings
from django.http import HttpRequest, HttpResponse
from pytest_django import Settings

from library_site.http.handlers import has_stock_middleware
from tests.support.applications import open_client
from tests.support.books import build_book
from tests.support.settings import override_by

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


@pytest.fixture
def install(api: httpx.Client, settings: Settings) -> Iterator[Callable[..., Any]]:
    """Returns a function that builds a client of an application with this middleware."""
    clients: list[httpx.Client] = []

    def install(*middleware: Callable[..., Any]) -> httpx.Client:
        names = [f"{MODULE}.{item.__name__}" for item in middleware]
        settings.API_MIDDLEWARE = [*settings.API_MIDDLEWARE, *names]
        clients.append(open_client())
        return clients[-1]

    yield install
    for client in clients:
        client.close()


Install = Callable[..., httpx.Client]


@pytest.mark.parametrize("books", ["/api/books", "/api/v2/books"])
def test_process_view_answers_for_one_route(install: Install, book: dict[str, Any], books: str) -> None:
    pages = [*django_settings.MIDDLEWARE]
    client = install(Teapot)
    responses = [client.get(f"{books}/{book['id']}"), client.put(f"{books}/{book['id']}", json=build_book(title="x"))]
    assert [(response.status_code, response.text) for response in responses] == [(418, "short and stout")] * 2
    assert responses[0].headers["Content-Length"] == "15"
    assert client.get("/api/books").json()[0]["title"] == book["title"]
    assert (client.get("/admin/login/").status_code, pages) == (200, django_settings.MIDDLEWARE)


def test_process_exception_answers_a_failure(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise LookupError("no room")

    client = install(Nurse)
    monkeypatch.setattr("library_site.api.viewsets.APIViewSet.initial", fail)
    assert (client.get("/api/books").status_code, client.get("/api/books").text) == (503, "LookupError: no room")


@pytest.mark.parametrize(
    "environment", [{}, {"CORS_ALLOWED_ORIGINS": "https://a.example", "API_RATE_LIMIT": "3/minute"}]
)
def test_the_library_has_only_middleware_that_can_be_compiled(environment: dict[str, str]) -> None:
    with override_by(environment):
        assert has_stock_middleware()


def test_any_other_middleware_turns_the_compiled_path_off(settings: Settings) -> None:
    names, teapot = settings.API_MIDDLEWARE, f"{MODULE}.Teapot"
    for settings.API_MIDDLEWARE in ([*names, teapot], [teapot, *names], names[1:], names[::-1]):
        assert not has_stock_middleware()

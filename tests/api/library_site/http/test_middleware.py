"""Middleware of others in API_MIDDLEWARE: all its hooks run, also for requests that the compiled path could answer."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx
import pytest
from django.conf import settings as django_settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse
from django.template.response import SimpleTemplateResponse
from pytest_django import Settings

from library_site.http.handlers import has_stock_middleware
from tests.support.applications import open_client
from tests.support.books import build_book
from tests.support.settings import override_by
from tests.support.sources import build_event, create_source, post_event

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


class Spy(Middleware):
    views: list[tuple[str, Mapping[str, Any]]] = []

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], arguments: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        assert not arguments
        self.views.append((view.__name__, dict(kwargs)))


class Nurse(Middleware):
    """Answers what no view could."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse:
        return HttpResponse(f"{type(error).__name__}: {error}".encode(), status=503)


class Stamp(Middleware):
    def process_template_response(
        self, request: HttpRequest, response: SimpleTemplateResponse
    ) -> SimpleTemplateResponse:
        assert not response.is_rendered
        response["X-Stamp"] = "seen"
        return response


def stay_away(get_response: GetResponse) -> GetResponse:
    raise MiddlewareNotUsed


@pytest.fixture(params=["compiled", "plain"])
def install(request: pytest.FixtureRequest, api: httpx.Client, settings: Settings) -> Iterator[Callable[..., Any]]:
    """Returns a function that builds a client of an application with this middleware."""
    settings.COMPILED_PATH = request.param == "compiled"
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


@pytest.mark.parametrize("books", ["/api/books", "/api/v1/books", "/api/v2/books"])
def test_process_view_answers_for_one_route(install: Install, book: dict[str, Any], books: str) -> None:
    client = install(Teapot)
    # More than once: the compiled path answers what it has seen before.
    for _ in range(3):
        responses = [
            client.get(f"{books}/{book['id']}"),
            client.put(f"{books}/{book['id']}", json=build_book(title="x")),
        ]
        assert [(response.status_code, response.text) for response in responses] == [(418, "short and stout")] * 2
        assert responses[0].headers["Content-Length"] == "15"
        assert client.get(books).status_code == 200
    assert client.get("/api/books").json()[0]["title"] == book["title"]


def test_process_view_sees_the_view_and_its_arguments(install: Install, book: dict[str, Any]) -> None:
    client = install(Spy)
    for _ in range(3):
        Spy.views = []
        client.get(f"/api/books/{book['id']}")
        client.get("/api/v2/books")
        assert Spy.views == [("BookViewSetV1", {"book_id": str(book["id"])}), ("BookViewSetV2", {})]


def test_the_first_that_answers_spares_the_others_the_view(install: Install, book: dict[str, Any]) -> None:
    client = install(Teapot, Spy)
    Spy.views = []
    assert client.get(f"/api/books/{book['id']}").status_code == 418
    assert not Spy.views


def test_process_exception_answers_a_failure(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise LookupError("no room")

    client = install(Nurse)
    monkeypatch.setattr("library_site.api.viewsets.APIViewSet.initial", fail)
    assert (client.get("/api/books").status_code, client.get("/api/books").text) == (503, "LookupError: no room")


def test_process_template_response_sees_what_is_not_rendered(install: Install) -> None:
    client = install(Stamp)
    create_source()
    assert post_event(client, build_event()).headers["X-Stamp"] == "seen"


def test_middleware_that_is_not_used_is_left_out(install: Install, book: dict[str, Any]) -> None:
    client = install(stay_away)
    assert client.get(f"/api/books/{book['id']}").json() == book


def test_pages_keep_their_middleware(install: Install) -> None:
    before = [*django_settings.MIDDLEWARE]
    client = install(Teapot)
    assert before == django_settings.MIDDLEWARE
    assert client.get("/admin/login/").status_code == 200


@pytest.mark.parametrize(
    "environment",
    [{}, {"CORS_ALLOWED_ORIGINS": "https://a.example"}, {"API_RATE_LIMIT": "3/minute"}],
)
def test_the_library_has_only_middleware_that_can_be_compiled(environment: dict[str, str]) -> None:
    with override_by(environment):
        assert has_stock_middleware()


@pytest.mark.parametrize(
    "change",
    [
        lambda names: [*names, f"{MODULE}.Teapot"],
        lambda names: [f"{MODULE}.Teapot", *names],
        lambda names: names[1:],
        lambda names: names[::-1],
    ],
)
def test_any_other_middleware_turns_the_compiled_path_off(
    settings: Settings, change: Callable[[list[str]], list[str]]
) -> None:
    settings.API_MIDDLEWARE = change(settings.API_MIDDLEWARE)
    assert not has_stock_middleware()

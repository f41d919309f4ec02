"""The compiled path serves what ships, as it was defined, and nothing else. Hooks of middleware run beside it."""

from collections.abc import Callable
from typing import Any, cast

import httpx
import pytest
from django.core.signals import got_request_exception, request_finished, request_started
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.cache import never_cache
from pytest_django import Settings
from rest_framework.fields import SerializerMethodField
from rest_framework.generics import GenericAPIView

from books.api.v1 import urls as v1_urls
from books.api.v1.serializers import BookCreateSerializer
from books.api.v1.views import BookViewSetV1
from books.api.v2 import urls as v2_urls
from books.api.v2.views import BookViewSetV2
from books.models import Book
from books.read_model import find_encoder
from books.serializers import BookSerializer
from library_site.api.compiled_path import wrap_handler
from library_site.api.renderers import JSONRenderer
from library_site.api.shipped import compile_routes, definitions
from library_site.http.pages import for_pages
from library_site.http.versions import get_versions
from library_site.urls import urlpatterns as pages
from oauth.authentication import BearerAuthentication
from oauth.permissions import LibraryAccess
from tests.support.applications import open_client
from tests.support.books import build_book
from tests.support.oauth_flows import create_key_header, create_user

# A root of an app, whose address comes last.
urlpatterns = [*pages, path("hours/", never_cache(v2_urls.urlpatterns[0].callback))]


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


def receive(**_: Any) -> None:
    """Is a hook or a receiver of another app."""


def is_compiled() -> bool:
    """Whether an application that is built now has the compiled path."""
    handler: Any = object()
    return wrap_handler(handler) is not handler


def test_what_ships_is_compiled(application: Any) -> None:
    assert is_compiled()
    assert sum(len(compile_routes(version.urlpatterns)) for version in get_versions().values()) == 9


@pytest.mark.parametrize("urls", [v1_urls, v2_urls])
def test_another_view_at_an_address_is_not_compiled(urls: Any) -> None:
    """A subclass, an argument of `as_view` and a decorator make another function."""
    version = urls.urlpatterns[0].callback.cls
    actions: dict[str, Any] = {"get": "list", "post": "create"}
    others: list[Any] = [
        cast("Any", type("Subclass", (version,), {})).as_view(actions),
        version.as_view(actions, queryset=Book.objects.none()),
        never_cache(urls.urlpatterns[0].callback),
    ]
    for other in others:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(urls.urlpatterns[0], "callback", other)
            assert compile_routes(urls.urlpatterns) == []


def test_a_serializer_that_shows_more_than_columns_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor one that does not ship: its fields may show something else than their columns."""
    length = {"length": SerializerMethodField(), "Meta": type("Meta", (BookSerializer.Meta,), {"fields": ["length"]})}
    own, computed = (cast("Any", type("Own", (BookSerializer,), fields)) for fields in ({}, length))
    monkeypatch.setitem(definitions, computed, {})
    assert [find_encoder(own), find_encoder(computed)] == [None, None]


def test_an_address_that_comes_first_is_not_bypassed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    number = path("books/7", never_cache(v2_urls.urlpatterns[0].callback))
    monkeypatch.setattr(v2_urls, "urlpatterns", [number, *v2_urls.urlpatterns])
    assert compile_routes(v2_urls.urlpatterns) == []
    monkeypatch.undo()
    settings.ROOT_URLCONF = "tests.api.library_site.shelves"
    assert not is_compiled()
    settings.ROOT_URLCONF = __name__
    assert is_compiled()


def test_a_method_that_is_replaced_is_noticed_at_the_next_start() -> None:
    hooks: list[tuple[type, str]] = [
        (LibraryAccess, "has_permission"),
        (BearerAuthentication, "authenticate"),
        (JSONRenderer, "render"),
        (BookViewSetV1, "get_object"),
        (BookViewSetV2, "get_queryset"),
        (GenericAPIView, "get_queryset"),
        (BookSerializer, "to_representation"),
        (BookCreateSerializer, "validate"),
    ]
    for owner, hook in hooks:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, hook, receive, raising=False)
            assert not is_compiled(), hook
    assert is_compiled()


def test_a_receiver_of_others_gets_every_request() -> None:
    for signal in (request_started, request_finished, got_request_exception):
        before = signal.receivers[:]
        signal.connect(receive)
        assert not is_compiled()
        signal.disconnect(receive)
        assert is_compiled()
        assert {key for key, *_ in signal.receivers} == {key for key, *_ in before}


TeapotForPages = for_pages(Teapot)
# It could override anything.
TeapotForAll = type("TeapotForAll", (TeapotForPages,), {})


def test_other_settings_turn_the_compiled_path_off(settings: Settings) -> None:
    names, teapot = [*settings.MIDDLEWARE], f"{__name__}.Teapot"
    for_all = f"{__name__}.TeapotForAll"
    for settings.MIDDLEWARE in ([*names, teapot], [teapot, *names], names[1:], names[::-1], [*names, for_all]):
        assert not is_compiled()
    # They see no request of a program.
    settings.MIDDLEWARE = [*(name for name in names if "CSP" not in name), f"{__name__}.TeapotForPages"]
    assert is_compiled()
    permission = "rest_framework.permissions.IsAuthenticated"
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "DEFAULT_PERMISSION_CLASSES": [permission]}
    assert not is_compiled()


def test_what_fails_django_tries_again_with_the_etag_that_the_client_sent(
    api: httpx.Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.GZIP = True
    with open_client() as client:
        client.post("/api/v2/books", json=build_book(title="Emma " * 190))
        etag = client.get("/api/v2/books").headers["ETag"]
        monkeypatch.delattr("books.api.compiled.fetch_page")
        unchanged = client.get("/api/v2/books", headers={"If-None-Match": etag})
    assert (unchanged.status_code, unchanged.headers["ETag"]) == (304, etag)
    assert etag.endswith('-gzip"')


def open_client_with(middleware: type[Middleware], settings: Settings) -> httpx.Client:
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.{middleware.__name__}"]
    return open_client()


def test_process_exception_answers_a_failure(
    api: httpx.Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise LookupError("no room")

    monkeypatch.setattr("library_site.api.viewsets.APIViewSet.initial", fail)
    with open_client_with(Nurse, settings) as client:
        response = client.get("/api/books")
    assert (response.status_code, response.text) == (503, "LookupError: no room")


@pytest.mark.parametrize("address", ["/api/books", "/api/v2/books"])
def test_middleware_sees_all_that_the_key_of_a_read_may_do(api: httpx.Client, settings: Settings, address: str) -> None:
    key = create_key_header(create_user("ann", ["books.change_book"]))
    with open_client_with(Witness, settings) as client:
        assert client.get(address, headers=key).headers["X-Rights"] == "read write books.change_book"

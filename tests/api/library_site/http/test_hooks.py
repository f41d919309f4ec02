"""Every hook of REST framework, django-filter and the paginations runs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn, cast

import pytest
from django_filters import RangeFilter
from rest_framework import serializers
from rest_framework.pagination import PageNumberPagination
from rest_framework.renderers import JSONRenderer as StockJSONRenderer

from books.api.v1 import urls as v1_urls
from books.api.v1.views import BookViewSetV1
from books.api.v2 import urls as v2_urls
from books.api.v2.views import BookViewSetV2
from books.api.views import BookViewSet
from books.models import Book
from library_site.api.parsers import JSONParser
from tests.support.applications import Answer, ApplicationVariant
from tests.support.books import build_book
from tests.support.credentials import Credentials
from tests.support.requests import BOOKS, Request
from tests.support.small_library import VERSION_2, encode_body, restore_books

MODULES: dict[type[BookViewSet], Any] = {BookViewSetV1: v1_urls, BookViewSetV2: v2_urls}
READ, LIST = Request("GET", "/books/1"), Request("GET", "/books", query="author=aus")
CREATE = Request("POST", "/books", body=encode_body(**build_book()))
CHANGE, DELETE = Request("PUT", "/books/1", body=encode_body(**build_book())), Request("DELETE", "/books/1")
# By hook, the requests that run it in actions of our own.
HOOKS: dict[str, list[Request]] = {
    "get_queryset": [READ, LIST, CHANGE, DELETE],
    "filter_queryset": [READ, LIST, CHANGE, DELETE],
    "get_object": [READ, CHANGE, DELETE],
    "check_object_permissions": [READ, CHANGE, DELETE],
    "get_serializer": [READ, LIST, CREATE, CHANGE],
    "get_serializer_class": [READ, LIST, CREATE, CHANGE],
    "get_serializer_context": [READ, LIST, CREATE, CHANGE],
    "paginate_queryset": [LIST],
    "get_paginated_response": [LIST],
    "perform_create": [CREATE],
    "perform_update": [CHANGE],
    "perform_destroy": [DELETE],
}
# Sends requests to a viewset with these attributes, in place of that of its version.
Serve = Callable[..., Iterator[Answer]]


class HookCalled(Exception):
    """A hook was called."""


def fail(*_: Any, **__: Any) -> NoReturn:
    raise HookCalled


@pytest.fixture
def serve(library: Credentials, plain: ApplicationVariant) -> Serve:
    def send_requests(
        version: type[BookViewSet], attributes: Mapping[str, Any], *requests: Request
    ) -> Iterator[Answer]:
        view = type("Own", (version,), {**attributes})
        with replace_view(version, view), plain.override_settings():
            for request in requests:
                restore_books()
                yield plain.send(spell(version, request))

    return send_requests


@contextmanager
def replace_view(version: type[BookViewSet], view: Any) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for pattern in MODULES[version].urlpatterns:
            if pattern.callback.cls is version:
                patch.setattr(pattern, "callback", view.as_view(pattern.callback.actions))
        yield


def spell(version: type[BookViewSet], request: Request) -> Request:
    return request._replace(spelling=VERSION_2) if version is BookViewSetV2 else request


with_each_version = pytest.mark.parametrize("version", MODULES)


@with_each_version
def test_a_hook_that_fails_fails_each_request(
    library: Credentials, plain: ApplicationVariant, version: type[BookViewSet]
) -> None:
    others = []
    for hook, requests in HOOKS.items():
        view = type("Failing", (version,), {hook: fail})
        with replace_view(version, view), plain.override_settings():
            statuses = {
                request.method + request.path: plain.send(spell(version, request)).status for request in requests
            }
        others += [(hook, *item) for item in statuses.items() if item[1] != "500 Internal Server Error"]
    assert not others


def test_another_field_finds_a_book(serve: Serve) -> None:
    address = f"/books/{BOOKS[0]['isbn']}"
    requests = [request._replace(path=address) for request in (READ, CHANGE, DELETE)]
    responses = serve(BookViewSetV2, {"lookup_field": "isbn"}, *requests, READ)
    assert [response.status[:3] for response in responses] == ["200", "200", "204", "404"]


class TitleParser(JSONParser):
    """Reads every book as one of this title."""

    def parse(self, *arguments: Any, **options: Any) -> Any:
        return {**super().parse(*arguments, **options), "title": "Emma"}


class Numbered(PageNumberPagination):
    page_size = 1


def write_genre(view: Any, serializer: Any) -> None:
    serializer.validated_data["genre"] = "Ours"
    BookViewSetV2.perform_create(view, serializer)


WRITING = {"perform_create": write_genre, "get_success_headers": lambda _, data: {"X-Shelf": data["genre"]}}
# The attributes of a viewset, a request, and parts of its response.
OVERRIDES: list[tuple[dict[str, Any], Request, list[str]]] = [
    ({"parser_classes": [TitleParser]}, CREATE, ["201 Created", '"title":"Emma"']),
    ({"pagination_class": Numbered}, LIST._replace(query="page=2&author=aus"), ['"count":2', "ausTEN"]),
    ({"renderer_classes": [StockJSONRenderer]}, LIST, ['"results":[{"id":1,']),
    (WRITING, CREATE, ['"genre":"Ours"', "('X-Shelf', 'Ours')", "('Location', '"]),
]


def test_what_a_viewset_has_of_its_own_counts(serve: Serve) -> None:
    for attributes, request, parts in OVERRIDES:
        [response] = serve(BookViewSetV2, attributes, request)
        assert [part for part in parts if part not in str(response)] == [], attributes


def test_a_filter_of_several_parameters_filters(serve: Serve) -> None:
    own: Any = type("OwnFilter", (BookViewSetV1.filterset_class,), {"own": cast("Any", RangeFilter)(field_name="year")})
    [response] = serve(BookViewSetV1, {"filterset_class": own}, LIST._replace(query="own_min=1800&own_max=1900"))
    assert [title in response.body for title in (b"Pride and Prejudice", b"ausTEN")] == [True, False]


class StockSerializer(serializers.ModelSerializer[Book]):
    class Meta:
        model = Book
        fields = ("id", "title")


def test_a_serializer_without_a_choice_of_fields_refuses_one(serve: Serve) -> None:
    requests = [request._replace(query="fields=title") for request in (READ, LIST)]
    for response in serve(BookViewSetV2, {"serializer_class": StockSerializer}, *requests):
        assert response.status == "400 Bad Request"
        assert b'"field":"fields"' in response.body

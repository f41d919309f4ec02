"""Every hook of REST framework, django-filter and the paginations counts, whether the path is compiled or not."""

import functools
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn, cast

import pytest
from django import forms
from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import include, path, re_path, register_converter
from django.urls.converters import IntConverter
from django_filters import BaseInFilter, CharFilter, MultipleChoiceFilter, NumberFilter, OrderingFilter, RangeFilter
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.filters import SearchFilter
from rest_framework.generics import GenericAPIView
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.pagination import PageNumberPagination
from rest_framework.permissions import BasePermission
from rest_framework.renderers import JSONRenderer as StockJSONRenderer
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from books.api.compiled import compile_routes
from books.api.filters import ListFilterBackend
from books.api.v1 import urls as v1_urls
from books.api.v1.serializers import BookCreateSerializer
from books.api.v1.views import BookViewSetV1
from books.api.v2 import urls as v2_urls
from books.api.v2.views import BookViewSetV2
from books.api.views import BookViewSet
from books.models import Book
from books.serializers import BookSerializer as BookSerializerV2
from library_site.api.parsers import JSONParser
from library_site.api.renderers import JSONRenderer
from oauth.authentication import BearerAuthentication
from oauth.permissions import LibraryAccess
from tests.support.applications import ApplicationVariant
from tests.support.books import build_book
from tests.support.credentials import Credentials
from tests.support.requests import Request
from tests.support.small_library import VERSION_2, encode_body, restore_books

MODULES: dict[type[BookViewSet], Any] = {BookViewSetV1: v1_urls, BookViewSetV2: v2_urls}
HOMES: dict[type[BookViewSet], str] = {BookViewSetV1: "/api", BookViewSetV2: "/api/v2"}
READ, LIST = Request("GET", "/books/1"), Request("GET", "/books", query="author=aus")
CREATE = Request("POST", "/books", body=encode_body(**build_book()))
CHANGE, DELETE = Request("PUT", "/books/1", body=encode_body(**build_book())), Request("DELETE", "/books/1")
ALL = [READ, LIST, CREATE, CHANGE, DELETE]
HOOKS: dict[str, list[Request]] = {
    "initialize_request": ALL,
    "initial": ALL,
    "perform_authentication": ALL,
    "check_permissions": ALL,
    "check_throttles": ALL,
    "get_authenticators": ALL,
    "get_permissions": ALL,
    "get_throttles": ALL,
    "get_renderers": ALL,
    "get_parsers": ALL,
    "finalize_response": [],
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
    "list": [LIST],
    "retrieve": [READ],
    "create": [CREATE],
    "update": [CHANGE],
    "destroy": [DELETE],
}
Serve = Callable[[type[BookViewSet], type[BookViewSet]], list[ApplicationVariant]]


class HookCalled(Exception):
    """A hook was called."""


def fail(*_: Any, **__: Any) -> NoReturn:
    raise HookCalled


@pytest.fixture
def serve(library: Credentials) -> Iterator[Serve]:
    """Yields a function that serves a subclass in place of a version's viewset, compiled and not, until the next."""
    with pytest.MonkeyPatch.context() as patch:

        def serve_view(version: type[BookViewSet], view: type[BookViewSet]) -> list[ApplicationVariant]:
            patch.undo()
            for pattern in MODULES[version].urlpatterns:
                if pattern.callback.cls is version:
                    patch.setattr(pattern, "callback", view.as_view(pattern.callback.actions))
            return [ApplicationVariant(compiled=True), ApplicationVariant(compiled=False)]

        yield serve_view


def send(variants: list[ApplicationVariant], version: type[BookViewSet], request: Request) -> list[Any]:
    """Returns the responses of both variants."""
    responses = []
    for variant in variants:
        restore_books()
        with variant.override_settings():
            spelled = request._replace(spelling=VERSION_2) if version is BookViewSetV2 else request
            responses.append(variant.send(spelled))
    return responses


with_each_version = pytest.mark.parametrize("version", MODULES)


@with_each_version
def test_an_unmodified_viewset_is_compiled(version: type[BookViewSet]) -> None:
    actions = {"GET", "POST", "PUT", *(["PATCH"] if version is BookViewSetV2 else [])}
    assert {route.method for route in compile_routes(HOMES[version])} == actions
    subclass = type("Subclass", (version,), {"ordering": ("pk",)})
    assert is_compiled(subclass, version)


def is_compiled(view: type[BookViewSet], version: type[BookViewSet]) -> bool:
    return bool(list_compiled_methods(view))


def list_compiled_methods(view: Any) -> list[str]:
    patterns = (path("books", view.as_view({"get": "list", "post": "create"}), name="books"),)
    return [route.method for route in compile_routes("", patterns)]


class DigitsConverter(IntConverter):
    regex = "[0-9]{4}"


register_converter(DigitsConverter, "digits")


def other_view(request: Any, **_: Any) -> HttpResponse:
    return HttpResponse("other")


@with_each_version
@pytest.mark.parametrize(
    ("first", "is_compiled"),
    [
        # They match no number, or none without more behind it.
        ([path("books/bulk", other_view), path("books/<int:pk>/loans", other_view)], True),
        ([path("shelves/<int:pk>", other_view), path("books", include([path("/7/x", other_view)]))], True),
        ([path("books/7", other_view)], False),
        ([path("books/<digits:pk>", other_view)], False),
        ([path("books/1<int:pk>7", other_view)], False),
        ([path("books/", include([path("42", other_view)]))], False),
        ([path("books/4", include([path("2", other_view)]))], False),
        ([path("<path:rest>/42", other_view)], False),
        ([re_path("^books/[0-9]{3}$", other_view)], False),
    ],
)
def test_an_address_that_comes_first_is_not_bypassed(
    version: type[BookViewSet], first: list[Any], is_compiled: bool
) -> None:
    home = HOMES[version].removeprefix("/")
    patterns = (path(f"{home}/", include([*first, *MODULES[version].urlpatterns])),)
    compiled = {route.pattern.pattern.partition("/(")[2] != "" for route in compile_routes(HOMES[version], patterns)}
    assert compiled == ({False, True} if is_compiled else {False})


@with_each_version
def test_a_route_with_fewer_addresses_is_not_compiled(version: type[BookViewSet]) -> None:
    retrieve = version.as_view({"get": "retrieve"})
    for first in (path("books/1", retrieve), re_path("^books/(?P<book_id>[0-9]{1,3})$", retrieve)):
        assert compile_routes("", (first,)) == []


@with_each_version
def test_a_hook_that_fails_fails_each_request(serve: Serve, version: type[BookViewSet]) -> None:
    others = []
    for hook, requests in HOOKS.items():
        variants = serve(version, type("Failing", (version,), {hook: fail}))
        for request in requests:
            statuses = [response.status for response in send(variants, version, request)]
            if statuses != ["500 Internal Server Error"] * 2:
                others.append((hook, request.method, request.path, statuses))
    assert not others


@with_each_version
@pytest.mark.parametrize("hook", ["filter_queryset", "is_valid", "get_form_class", "qs"])
def test_a_hook_of_the_filter_set_that_fails_fails_each_list(
    serve: Serve, version: type[BookViewSet], hook: str
) -> None:
    filterset = type("FailingFilter", (version.filterset_class,), {hook: property(fail) if hook == "qs" else fail})
    variants = serve(version, type("Filtered", (version,), {"filterset_class": filterset}))
    assert [response.status for response in send(variants, version, LIST)] == ["500 Internal Server Error"] * 2


@with_each_version
@pytest.mark.parametrize("hook", ["paginate_queryset", "get_paginated_response"])
def test_a_hook_of_the_pagination_that_fails_fails_each_list(
    serve: Serve, version: type[BookViewSet], hook: str
) -> None:
    pagination = type("FailingPagination", (cast("Any", version.pagination_class),), {hook: fail})
    variants = serve(version, type("Paged", (version,), {"pagination_class": pagination}))
    assert [response.status for response in send(variants, version, LIST)] == ["500 Internal Server Error"] * 2


@with_each_version
def test_another_field_finds_a_book(serve: Serve, version: type[BookViewSet]) -> None:
    variants = serve(version, type("ByISBN", (version,), {"lookup_field": "isbn"}))
    page = json.loads(send(variants, version, READ._replace(path="/books"))[0].body)
    address = f"/books/{(page['results'] if isinstance(page, dict) else page)[0]['isbn']}"
    for request in (READ, CHANGE, DELETE):
        responses = send(variants, version, request._replace(path=address))
        assert [response.status[:2] for response in responses] == ["20"] * 2
    assert [response.status for response in send(variants, version, READ)] == ["404 Not Found"] * 2


def hide_austen(view: Any) -> QuerySet[Any]:
    return BookViewSet.queryset.exclude(author="Jane Austen")


@with_each_version
def test_hidden_books_are_not_there(serve: Serve, version: type[BookViewSet]) -> None:
    variants = serve(version, type("Hiding", (version,), {"get_queryset": hide_austen}))
    for request in (READ, CHANGE, DELETE):
        assert [response.status for response in send(variants, version, request)] == ["404 Not Found"] * 2
    for response in send(variants, version, LIST):
        assert b"Jane Austen" not in response.body
        assert b"ausTEN" in response.body


class TitleParser(JSONParser):
    """Reads every book as one of this title."""

    def parse(self, *arguments: Any, **options: Any) -> Any:
        return {**super().parse(*arguments, **options), "title": "Emma"}


class Forbidding(BasePermission):
    def has_object_permission(self, request: Any, view: Any, obj: Any) -> bool:
        raise PermissionDenied(f"{obj.title} is not for you")


class Refusing(BaseThrottle):
    def allow_request(self, request: Any, view: Any) -> bool:
        return False


class ShoutingMixin:
    def to_representation(self, instance: Any) -> Any:
        data = super().to_representation(instance)  # type: ignore[misc]  # the serializer's
        return {**data, "title": data["title"].upper()}


class Numbered(PageNumberPagination):
    page_size = 1


def build_shouting(version: Any) -> dict[str, Any]:
    return {"serializer_class": type("Shouting", (ShoutingMixin, version.serializer_class), {})}


def build_writing(version: Any) -> dict[str, Any]:
    def perform_create(view: Any, serializer: Any) -> None:
        serializer.validated_data["genre"] = "Ours"
        version.perform_create(view, serializer)

    return {"perform_create": perform_create, "get_success_headers": lambda _, data: {"X-Shelf": data["genre"]}}


def replace_response(view: Any, request: Any, response: Response, *arguments: Any, **options: Any) -> HttpResponse:
    return HttpResponse("ours", status=299)


# The attributes of a viewset, which some build from those of the version, the requests, and parts of each response.
OVERRIDES: dict[str, tuple[Any, list[Request], list[str]]] = {
    "parser": ({"parser_classes": [TitleParser]}, [CREATE, CHANGE], ["20", '"title":"Emma"']),
    "permission": (
        {"permission_classes": [Forbidding]},
        [READ, CHANGE, DELETE],
        ["403 Forbidden", "Pride and Prejudice is not for you"],
    ),
    "throttle": ({"throttle_classes": [Refusing]}, [READ], ["429 Too Many Requests"]),
    "serializer": (build_shouting, [READ, LIST, CREATE, CHANGE], ["PRIDE AND PREJUDICE"]),
    "pagination": ({"pagination_class": Numbered}, [LIST._replace(query="page=2&author=aus")], ['"count":2', "ausTEN"]),
    "writing": (build_writing, [CREATE], ["201 Created", '"genre":"Ours"', "('X-Shelf', 'Ours')", "('Location', '"]),
    "response": ({"finalize_response": replace_response}, ALL, ["299", "b'ours'"]),
    "filter backend": (
        {"filter_backends": [ListFilterBackend, SearchFilter], "search_fields": ["title"]},
        [LIST._replace(query="search=nowhere&author=aus")],
        ["200 OK", "[]"],
    ),
}


@with_each_version
@pytest.mark.parametrize("name", OVERRIDES)
def test_what_a_viewset_has_of_its_own_counts(serve: Serve, version: type[BookViewSet], name: str) -> None:
    attributes, requests, parts = OVERRIDES[name]
    variants = serve(version, type("Own", (version,), attributes(version) if callable(attributes) else attributes))
    for request in requests:
        for response in send(variants, version, request):
            assert [part for part in parts if part not in str(response)] == []


class ConstantField(serializers.CharField):
    def get_attribute(self, instance: Any) -> str:
        return "Ours"


class Noted(BookSerializerV2):
    """Shows what only a model object has, and keeps the isbn to itself."""

    note = serializers.SerializerMethodField()
    genre = ConstantField()

    class Meta(BookSerializerV2.Meta):
        fields = (*BookSerializerV2.Meta.fields, "note")
        extra_kwargs = {"isbn": {"write_only": True}}

    def get_note(self, book: Any) -> str:
        return f"{book.pk} is a {type(book).__name__}"


class Secret(BookSerializerV2):
    class Meta(BookSerializerV2.Meta):
        extra_kwargs = {"isbn": {"write_only": True}}


def test_every_response_shows_a_model_object(serve: Serve) -> None:
    variants = serve(BookViewSetV2, type("Noting", (BookViewSetV2,), {"serializer_class": Noted}))
    for request in (READ, LIST, CREATE, CHANGE, READ._replace(query="fields=note,genre")):
        for response in send(variants, BookViewSetV2, request):
            assert b" is a Book" in response.body
            assert b'"genre":"Ours"' in response.body
            assert b'"isbn":' not in response.body


def test_a_field_that_is_only_written_is_not_shown(serve: Serve) -> None:
    variants = serve(BookViewSetV2, type("Keeping", (BookViewSetV2,), {"serializer_class": Secret}))
    for request in (READ, LIST, CREATE, CHANGE):
        for response in send(variants, BookViewSetV2, request):
            assert b'"title":' in response.body
            assert b'"isbn":' not in response.body


class StockSerializer(serializers.ModelSerializer[Book]):
    class Meta:
        model = Book
        fields = ("id", "title")


def test_a_serializer_without_a_choice_of_fields_refuses_one(serve: Serve) -> None:
    variants = serve(BookViewSetV2, type("Stock", (BookViewSetV2,), {"serializer_class": StockSerializer}))
    for request in (READ, LIST):
        for response in send(variants, BookViewSetV2, request._replace(query="fields=title")):
            assert response.status == "400 Bad Request"
            assert b'"field":"fields"' in response.body


class NumbersFilter(BaseInFilter, NumberFilter):
    """Takes numbers between commas."""


def make_filter(kind: Any, **options: Any) -> Any:
    """django-filter has no types."""
    return kind(**options)


class RefusingForm(forms.Form):
    def clean(self) -> NoReturn:
        raise forms.ValidationError("Not like this")


@with_each_version
@pytest.mark.parametrize(
    ("filter", "query"),
    [
        (make_filter(MultipleChoiceFilter, field_name="genre", choices=[("Novel", ""), ("Poem", "")]), "own=Novel"),
        (make_filter(NumbersFilter, field_name="id", lookup_expr="in"), "own=1,7"),
        (make_filter(OrderingFilter, fields=["year"]), "own=-year&genre=novel"),
        (make_filter(CharFilter, field_name="title", lookup_expr="icontains"), "own=pride"),
    ],
    ids=["several values", "values with commas", "order", "text"],
)
def test_filters_of_any_kind_filter(serve: Serve, version: type[BookViewSet], filter: Any, query: str) -> None:
    filterset = type("OwnFilter", (version.filterset_class,), {"own": filter})
    variants = serve(version, type("Filtered", (version,), {"filterset_class": filterset}))
    for response in send(variants, version, LIST._replace(query=query)):
        assert response.status == "200 OK"
        assert b"Pride and Prejudice" in response.body
        assert b"ausTEN" not in response.body


def test_a_filter_takes_several_parameters(serve: Serve) -> None:
    filterset = type(
        "OwnFilter", (BookViewSetV1.filterset_class,), {"period": make_filter(RangeFilter, field_name="year")}
    )
    variants = serve(BookViewSetV1, type("Filtered", (BookViewSetV1,), {"filterset_class": filterset}))
    for response in send(variants, BookViewSetV1, LIST._replace(query="period_min=1800&period_max=1900")):
        assert b"Pride and Prejudice" in response.body
        assert b"ausTEN" not in response.body


def test_a_form_of_the_filter_set_checks_the_query(serve: Serve) -> None:
    meta = type("Meta", (), {"form": RefusingForm})
    hooks = {"Meta": meta, "own": make_filter(CharFilter, field_name="title")}
    filterset = type("OwnFilter", (BookViewSetV1.filterset_class,), hooks)
    variants = serve(BookViewSetV1, type("Filtered", (BookViewSetV1,), {"filterset_class": filterset}))
    for response in send(variants, BookViewSetV1, LIST):
        assert response.status == "422 Unprocessable Entity"
        assert b"Not like this" in response.body


def keep(hook: Any) -> Any:
    """A decorator that only calls what it decorates, as `cache_page` may."""

    @functools.wraps(hook)
    def wrapper(*arguments: Any, **options: Any) -> Any:
        return hook(*arguments, **options)

    return wrapper


UNCOMPILED: dict[str, dict[str, Any]] = {
    "a decorated list": {"list": keep(BookViewSetV1.list)},
    "a partial": {"get_queryset": partial(BookViewSetV1.get_queryset)},
    "another order": {"queryset": BookViewSet.queryset.reverse()},
    "another negotiation": {"content_negotiation_class": DefaultContentNegotiation},
    "another versioning": {"versioning_class": None},
    "no filter set": {"filterset_class": None},
    "no pages": {"pagination_class": None},
    "pages of another kind": {"pagination_class": Numbered},
}


@pytest.mark.parametrize("name", UNCOMPILED)
def test_what_is_not_known_is_left_to_the_framework(name: str) -> None:
    assert not is_compiled(type("Other", (BookViewSetV1,), UNCOMPILED[name]), BookViewSetV1)


@pytest.mark.parametrize(
    ("owner", "hook"),
    [
        (LibraryAccess, "has_permission"),
        (BearerAuthentication, "authenticate"),
        (JSONRenderer, "render"),
        (BookViewSetV1, "get_object"),
        (GenericAPIView, "get_queryset"),
    ],
)
def test_a_hook_that_is_replaced_is_noticed_at_the_next_start(
    owner: type, hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_compiled(BookViewSetV1, BookViewSetV1)
    monkeypatch.setattr(owner, hook, fail)
    assert not is_compiled(BookViewSetV1, BookViewSetV1)


def test_a_method_that_a_viewset_does_not_take_is_not_compiled() -> None:
    view = type("Reading", (BookViewSetV1,), {"http_method_names": ["get", "head", "options"]})
    assert list_compiled_methods(view) == ["GET"]


class StrictCreateSerializer(BookCreateSerializer):
    def validate_title(self, title: str) -> str:
        return title


def test_a_body_with_a_rule_of_its_own_is_left_to_the_framework() -> None:
    serializers = {**BookViewSetV1.body_serializers, "create": StrictCreateSerializer}
    view = type("Strict", (BookViewSetV1,), {"body_serializers": serializers})
    assert list_compiled_methods(view) == ["GET"]


@with_each_version
def test_another_renderer_renders(serve: Serve, version: type[BookViewSet]) -> None:
    stock = serve(version, version)
    responses = [(request, json.loads(send(stock, version, request)[0].body)) for request in (READ, LIST)]
    variants = serve(version, type("Rendered", (version,), {"renderer_classes": [StockJSONRenderer]}))
    for request, expected in responses:
        assert [json.loads(response.body) for response in send(variants, version, request)] == [expected] * 2

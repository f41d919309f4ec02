"""Compiled routes of books: they do what the hooks of an unmodified viewset do, without Django and REST framework.

Django handles a viewset with other hooks, permissions or filters. Deleting this module and its callers in `urls`
changes no response.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from inspect import unwrap
from itertools import starmap
from types import SimpleNamespace, WrapperDescriptorType
from typing import Any, NamedTuple, cast

from django.core.exceptions import EmptyResultSet, FullResultSet
from django.db.models import F, QuerySet
from django.urls import Resolver404, URLPattern, URLResolver, resolve
from django.urls.resolvers import RoutePattern
from django.utils import timezone
from django.utils.functional import cached_property
from django_filters.rest_framework.backends import DjangoFilterBackend
from django_filters.rest_framework.filterset import FilterSet
from rest_framework.authentication import BaseAuthentication
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.serializers import ListSerializer, ModelSerializer
from rest_framework.throttling import BaseThrottle
from rest_framework.viewsets import ModelViewSet

from books.api import filters
from books.api.exports import choose_format
from books.api.pagination import KeysetPage
from books.api.views import BookViewSet
from books.history.actors import ActorRef, get_or_create_actor
from books.models import Book
from books.read_model import BookEncoder, BookListSerializer, Column, compile_serializer, has_only_conditions
from books.writing import changes
from library_site.api.compiled_path import WRITE_KEY, CompiledRequest, CompiledResponse, CompiledRoute
from library_site.api.conditions import NO_CONDITIONS, Conditions
from library_site.api.decoding import BodyDecoder, NotCompilable, make_decoder
from library_site.api.negotiation import JSONNegotiation, ServedVersioning
from library_site.api.parsers import JSONParser
from library_site.api.renderers import JSONRenderer
from library_site.api.responses import encode_json
from library_site.cached_settings import cached_settings
from library_site.db.postgresql.lost_connections import close_lost_connection
from library_site.db.sql import PreparedStatement, Row
from library_site.http.api_errors import ERROR_KEY
from library_site.http.callers import get_caller_key
from oauth.api_keys import find_key_and_rows
from oauth.authentication import APIKeyAuthentication, BearerAuthentication, find_credential
from oauth.credentials import Credential
from oauth.permissions import LibraryAccess, get_required_permissions, get_required_scope, require_permission
from oauth.scopes import PermissionSet, list_asked
from oauth.throttling import CallerThrottle, count_request

# By route, an example of its paths, and those that are compiled. The id must fit into the column.
PATHS = {
    "books": ("books", re.compile("/books")),
    "books/<str:book_id>": ("books/1", re.compile(r"/books/(0|[1-9][0-9]{0,17})")),
}
JSON_ACCEPTS = {"", "*/*", "application/json"}
# Clients can cause many different statements. The cache keeps so many.
CACHED_STATEMENTS = 1_000
METHODS = {"list": "GET", "retrieve": "GET", "create": "POST", "update": "PUT", "partial_update": "PATCH"}
# Their decorators add documents, and Idempotency-Key. Django handles requests with that header.
WRAPPERS = ("drf_spectacular.drainage", "drf_spectacular.utils", "library_site.api.idempotency")
FRAMEWORKS = ("rest_framework.", "django_filters.", "django.")
# Our own hooks that the compiled routes replace, by class.
OWN_HOOKS = {
    "library_site.api.viewsets.APIViewSet": "initial perform_authentication get_object check_permissions options"
    " finalize_response get_serializer_class get_parsers",
    "library_site.api.viewsets.ResourceViewSet": "list retrieve create update partial_update destroy",
    "books.api.views.BookViewSet": "dispatch list get_object perform_create perform_update perform_destroy"
    " handle_exception",
    "books.api.v1.views.BookViewSetV1": "destroy options",
    "books.api.v2.views.BookViewSetV2": "list create get_serializer",
    "books.api.filters.QueryFilterSet": "__init__ get_form_class filter_queryset",
    "books.api.filters.ListFilterBackend": "get_filterset_class",
    "books.api.v1.pagination.SkipLimitPagination": "get_offset get_limit paginate_queryset get_paginated_response",
    "library_site.api.pagination.CursorPagination": "get_paginated_response",
    "books.api.pagination.KeysetPagination": "paginate_queryset",
    "library_site.api.renderers.JSONRenderer": "render",
    "oauth.authentication.BearerAuthentication": "authenticate authenticate_header",
    "oauth.authentication.APIKeyAuthentication": "authenticate",
    "oauth.permissions.LibraryAccess": "has_permission",
    "oauth.throttling.CallerThrottle": "allow_request wait",
    "books.read_model.ReadSerializer": "__init__ get_fields to_representation",
    "books.read_model.BookListSerializer": "to_representation",
}
OWN_FILTERS = {
    filters.AvailableFilter, filters.ContainsFilter, filters.ISBNFilter, filters.WordsFilter, filters.YearFilter,
}  # fmt: skip


def compile_routes(home: str, urlconf: Any = None) -> list[CompiledRoute]:
    """Returns the compiled routes of the version with this home, for the viewsets that Django finds at its addresses.

    There are none for a viewset with its own hooks, and where other patterns come first that can match some of the
    addresses. `urlconf` is ROOT_URLCONF by default.
    """
    routes = []
    for route, (example, path) in PATHS.items():
        try:
            match = resolve(f"{home}/{example}", urlconf)
        except Resolver404:
            continue
        whole_route = f"{home}/{route}".removeprefix("/")
        base, parameter, _ = whole_route.partition("<")
        # The last one is the match itself.
        earlier = (match.tried or [])[:-1] if parameter else []
        if match.route != whole_route or any(can_match_number(patterns, base) for patterns in earlier):
            continue
        callback = cast("Any", match.func)
        if is_compilable(getattr(callback, "cls", object)):
            responders, actions = CompiledBooks(callback.cls).list_responders(), callback.actions
            methods = {*actions, "options", *(["head"] if "get" in actions else [])}
            allow = ", ".join(name.upper() for name in callback.cls.http_method_names if name in methods)
            routes += [
                CompiledRoute(method.upper(), path, str(match.url_name), allow, responders[action])
                for method, action in actions.items()
                if action in responders and method != "head" and method in callback.cls.http_method_names
            ]
    return routes


def can_match_number(patterns: Sequence[URLPattern | URLResolver], base: str) -> bool:
    """Whether a pattern, after those of its `include`, can match the base and a number; true if that is not certain."""
    routes = [part.pattern for part in patterns]
    text = "".join(str(route) if isinstance(route, RoutePattern) else "<>" for route in routes)
    literal, converter, _ = text.partition("<")
    if not literal.startswith(base):
        return bool(converter) and base.startswith(literal)
    number = literal.removeprefix(base) + (text.rpartition(">")[2] if converter else "")
    return number.isdigit() or (bool(converter) and not number)


def is_compilable(view: Any) -> bool:
    """Whether a viewset and everything it declares have only hooks that the compiled routes replace."""
    if not issubclass(view, BookViewSet) or not all(view_has_known_classes(view)):
        return False
    hooks: list[tuple[Any, ...]] = [
        (view, BookViewSet, ModelViewSet),
        (view.pagination_class, LimitOffsetPagination),
        (view.serializer_class, ModelSerializer),
        (BookListSerializer, ListSerializer),
        (view.filterset_class, FilterSet),
        (filters.ListFilterBackend, DjangoFilterBackend),
        (BearerAuthentication, BaseAuthentication),
        (APIKeyAuthentication, BaseAuthentication),
        (LibraryAccess, BasePermission),
        (CallerThrottle, BaseThrottle),
        (JSONRenderer, BaseRenderer),
    ]
    return all(starmap(has_known_hooks, hooks)) and compile_serializer(view.serializer_class) is not None


def view_has_known_classes(view: Any) -> Iterator[bool]:
    query = view.queryset.query
    yield has_only_conditions(view.queryset) and not query.where and query.order_by == ("pk",)
    yield query.standard_ordering and not query.is_sliced
    yield [*view.filter_backends] == [filters.ListFilterBackend]
    yield [*view.authentication_classes] == [BearerAuthentication, APIKeyAuthentication]
    yield [*view.permission_classes] == [LibraryAccess]
    yield [*view.throttle_classes] == ([CallerThrottle] if cached_settings.API_RATE_LIMIT else [])
    yield ([*view.renderer_classes], [*view.parser_classes]) == ([JSONRenderer], [JSONParser])
    yield view.lookup_field == "pk"
    yield (view.content_negotiation_class, view.versioning_class) == (JSONNegotiation, ServedVersioning)
    yield hasattr(view.pagination_class, "find_errors")
    yield issubclass(view.serializer_class, ModelSerializer)
    yield getattr(view.serializer_class.Meta, "list_serializer_class", None) is BookListSerializer
    yield issubclass(view.filterset_class or object, filters.QueryFilterSet)
    yield view.filterset_class._meta.form is filters.QueryForm
    yield all(type(filter) in OWN_FILTERS for filter in view.filterset_class.base_filters.values())


def has_known_hooks(subject: Any, base: type, framework: type | None = None) -> bool:
    """Whether each method of the base is the framework's, one of OWN_HOOKS, or no hook of the framework's class.

    Hooks for documents do not matter.
    """
    names = [name for name in dir(base) if name == "__init__" or not (name.startswith("_") or "schema" in name)]
    return all(is_known(getattr(subject, name, None), framework or base) for name in names)


def is_known(hook: Any, framework: type) -> bool:
    hook = getattr(hook, "fget", hook.func if isinstance(hook, cached_property) else hook)
    function = unwrap(getattr(hook, "__func__", hook), stop=lambda wrapper: get_module(wrapper) not in WRAPPERS)
    if isinstance(function, type | WrapperDescriptorType) or not callable(function):
        return True
    owner, _, name = f"{function.__module__}.{getattr(function, '__qualname__', '')}".rpartition(".")
    is_own = owner in OWN_HOOKS and (name in OWN_HOOKS[owner].split() or not hasattr(framework, name))
    return (is_own or owner.startswith(FRAMEWORKS)) and get_module(function) == function.__module__


def get_module(function: Any) -> str:
    """Returns the module that defines the function. A wrapper copies the name of the function that it wraps."""
    return str(getattr(function, "__globals__", {}).get("__name__"))


class Requirement(NamedTuple):
    """What LibraryAccess asks for an action, and the permissions that tell whether a key has it."""

    scope: str
    permissions: PermissionSet
    asked: PermissionSet


def build_requirement(view: Any, action: str, method: str) -> Requirement:
    scope, permissions = get_required_scope(method), get_required_permissions(view, action, method)
    return Requirement(scope, permissions, permissions | list_asked(scope))


class CompiledBooks:
    """Does what a viewset does in its hooks."""

    def __init__(self, view: Any) -> None:
        self.view_class = view
        self.representation = cast("BookEncoder", compile_serializer(view.serializer_class))
        self.filters = cast("Mapping[str, Any]", filters.get_filters(view.filterset_class))
        self.decoders: dict[str, BodyDecoder] = {}
        self.requirements = {action: build_requirement(view, action, method) for action, method in METHODS.items()}
        for action in ("create", "update", "partial_update"):
            # If a viewset validates its body differently, Django handles its writes.
            with suppress(KeyError, NotCompilable):
                self.decoders[action] = make_decoder(view.body_serializers[action])

    def list_responders(self) -> dict[str, Any]:
        """Returns a responder for each action. It takes a CompiledRequest and returns a CompiledResponse, or None."""
        writes: dict[str, Any] = {action: partial(self.change_book, action) for action in self.decoders}
        if "create" in writes:
            writes["create"] = self.create_book
        return {"list": self.list_books, "retrieve": self.read_book, **writes}

    def prepare_view(self, action: str, request: CompiledRequest) -> tuple[Any, BookEncoder]:
        """Returns the view and the representation of its books. Raises UnknownParameter, ValidationError."""
        # Django does so when a request starts. A write would not be tried again on another connection.
        close_lost_connection()
        view = self.view_class()
        view.action, view.request = action, SimpleNamespace(version=request.environ["library.version"].name)
        view.check_query(request.query)
        names = view.get_shown_fields(request.query)
        return view, self.representation if names is None else self.representation.with_fields(names)

    def list_books(self, request: CompiledRequest) -> CompiledResponse | None:
        accept = request.environ.get("HTTP_ACCEPT", "")
        if accept not in JSON_ACCEPTS and choose_format(accept):
            return None
        credential = self.authorize("list", request)
        view, representation = self.prepare_view("list", request)
        if view.find_page_errors(request.query):
            return None
        page = view.paginator.paginate_queryset(self.filter_books(request.query.query_params), request.query)
        response = view.paginator.get_paginated_response(representation.to_structs(fetch_page(page, representation)))
        body = encode_json(response.data)
        headers = {name: value for name, value in response.items() if name != "Content-Type"}
        if etag := view.make_list_etag(body):
            headers["ETag"] = etag
            if Conditions.from_environ(request.environ).is_not_modified(etag):
                headers, body = {"ETag": etag}, b""
        return CompiledResponse(200 if body else 304, headers, body) if is_within_limit(request, credential) else None

    def filter_books(self, parameters: Mapping[str, Any]) -> QuerySet[Book]:
        """Raises forms.ValidationError."""
        books: QuerySet[Book] = self.view_class.queryset
        for name, filter in self.filters.items():
            if name in parameters:
                books = filter.filter(books, filter.field.clean(str(parameters[name])))
        return books

    def read_book(self, request: CompiledRequest) -> CompiledResponse | None:
        """Reads a book and the client's API key in one round trip."""
        view, representation = self.prepare_view("retrieve", request)
        statement, pk = build_book_statement(representation), int(request.argument)
        credential: Credential | None
        if "HTTP_X_API_KEY" in request.environ and "HTTP_AUTHORIZATION" not in request.environ:
            text, requirement = request.environ["HTTP_X_API_KEY"], self.requirements["retrieve"]
            credential, rows = find_key_and_rows(text, timezone.now(), requirement.asked, statement, (pk,))
            require_permission(credential, requirement.scope, requirement.permissions)
        else:
            credential, rows = self.authorize("retrieve", request), statement.fetch_all((pk,))
        if rows:
            etag = view.make_etag(SimpleNamespace(id=pk, version=rows[0][-1]))
            is_known = Conditions.from_environ(request.environ).is_not_modified(etag)
        if not is_within_limit(request, credential):
            return None
        if not rows:
            # Django renders the error without reading the book again.
            request.environ[ERROR_KEY] = changes.BookNotFound()
            return None
        body = b"" if is_known else encode_json(representation.to_structs(rows)[0])
        return CompiledResponse(200 if body else 304, {"ETag": etag}, body)

    def create_book(self, request: CompiledRequest) -> CompiledResponse | None:
        if not (write := self.begin_write("create", request)):
            return None
        view, values, actor = write
        book = changes.create_book(values, actor, timezone.now())
        return self.show(view, book, 201, Location=f"{request.environ['library.version'].home}/books/{book.id}")

    def change_book(self, action: str, request: CompiledRequest) -> CompiledResponse | None:
        if not (write := self.begin_write(action, request)):
            return None
        view, values, actor = write
        conditions = Conditions.from_environ(request.environ)
        check = None if conditions == NO_CONDITIONS else lambda book: conditions.require_state(view.make_etag(book))
        return self.show(view, changes.change_book(int(request.argument), values, check, actor, timezone.now()), 200)

    def begin_write(self, action: str, request: CompiledRequest) -> tuple[Any, Mapping[str, Any], ActorRef] | None:
        """Returns the view, the values and the actor, or None if Django must parse the query or the body."""
        body = None if request.query.query_params else request.read_body()
        values = None if body is None else self.decoders[action](body)
        if values is None:
            return None
        credential = self.authorize(action, request)
        if not is_within_limit(request, credential):
            return None
        request.environ[WRITE_KEY] = True
        view, _ = self.prepare_view(action, request)
        return view, values, get_or_create_actor(view.request.version, credential=credential)

    def authorize(self, action: str, request: CompiledRequest) -> Credential | None:
        """Raises AuthenticationFailed, NotAuthenticated, PermissionDenied. Django renders them."""
        requirement = self.requirements[action]
        credential = find_credential(request.environ, requirement.asked)
        require_permission(credential, requirement.scope, requirement.permissions)
        return credential

    def show(self, view: Any, book: Any, status: int, **headers: str) -> CompiledResponse:
        body = encode_json(self.representation.to_struct(book))
        return CompiledResponse(status, {"ETag": view.make_etag(book), **headers}, body)


def is_within_limit(request: CompiledRequest, credential: Credential | None) -> bool:
    """Counts the request. Call it last: if Django handled the request afterwards, it would be counted twice."""
    if not cached_settings.API_RATE_LIMIT:
        return True
    caller = cast("Any", SimpleNamespace(META=request.environ, auth=credential, user=None))
    return count_request(caller, get_caller_key(caller)) == 0


def fetch_page(page: Any, representation: BookEncoder) -> list[Row]:
    """Reads a page of the pagination. Only the condition is compiled for each request; the statement is cached."""
    keyset = page if isinstance(page, KeysetPage) else None
    books, extra = (keyset.books, keyset.key_columns) if keyset else (page, ())
    if not has_only_conditions(books):
        rows = list(books.values_list(*representation.columns, *extra))
    else:
        try:
            condition, parameters = compile_condition(books)
            skip, end = books.query.low_mark, books.query.high_mark or 0
            statement = build_page_statement(representation, books.query.order_by, extra, condition)
            rows = statement.fetch_all((*parameters, end - skip, skip))
        except EmptyResultSet:
            rows = []
    return keyset.cut(rows) if keyset else rows


@lru_cache(CACHED_STATEMENTS)
def build_page_statement(
    representation: BookEncoder, order_by: tuple[Any, ...], extra: tuple[Column, ...], condition: str
) -> PreparedStatement:
    """PostgreSQL plans the condition for each request: a plan that is fast for one text is slow for another."""
    rows = Book.objects.order_by(*order_by).values_list(*representation.columns, *extra)
    select_sql, _, order_sql = rows.query.sql_with_params()[0].partition(" ORDER BY ")
    sql = f"{select_sql}{condition} ORDER BY {order_sql} LIMIT %s OFFSET %s"
    # Clients can choose thousands of combinations of fields, too many for PostgreSQL to keep plans for.
    return PreparedStatement(sql, reuse_plan=representation.is_whole and not condition)


@lru_cache(CACHED_STATEMENTS)
def build_book_statement(representation: BookEncoder) -> PreparedStatement:
    sql, _ = Book.objects.filter(pk=0).values_list(*representation.columns, F("version")).query.sql_with_params()
    return PreparedStatement(sql, representation.is_whole)


def compile_condition(books: QuerySet[Book]) -> tuple[str, tuple[Any, ...]]:
    """Returns the SQL condition of a queryset and its parameters. Raises EmptyResultSet if no book can match."""
    if not books.query.where:
        return "", ()
    try:
        sql, parameters = books.query.get_compiler(books.db).compile(books.query.where)
    except FullResultSet:
        return "", ()
    return f" WHERE {sql}", tuple(parameters)

"""The compiled routes of books: what the hooks of an unmodified viewset do, without Django and REST framework.

A viewset is compiled if nothing but its declarations differs from BookViewSetV1 and BookViewSetV2: hooks of its own,
another permission or filter of another kind leave it to Django. Deleting this module and its two callers in `urls`
changes no response.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from inspect import isfunction, ismethod, unwrap
from typing import Any, NamedTuple, cast

from django.core.exceptions import EmptyResultSet, FullResultSet
from django.db.models import F, QuerySet
from django.urls import URLPattern
from django.utils import timezone
from django_filters.rest_framework.backends import DjangoFilterBackend
from django_filters.rest_framework.filterset import FilterSet
from rest_framework.pagination import BasePagination, LimitOffsetPagination
from rest_framework.serializers import ListSerializer, ModelSerializer
from rest_framework.viewsets import ModelViewSet

from books.api.conditional import NO_CONDITIONS, Conditions
from books.api.exports import choose_format
from books.api.filters import (
    AvailableFilter,
    ContainsFilter,
    ISBNFilter,
    ListFilterBackend,
    WordsFilter,
    YearFilter,
    get_filters,
)
from books.api.pagination import KeysetPage
from books.api.views import BookViewSet
from books.history.actors import ActorRef, find_actor
from books.models import Book
from books.read_model import BookListSerializer, Column, Representation, compile_serializer, has_only_conditions
from books.rows import BookRow
from books.writing import changes
from library_site.api.compiled_path import WRITE_KEY, CompiledRequest, CompiledResponse, CompiledRoute
from library_site.api.decoding import BodyDecoder, NotCompilable, make_decoder
from library_site.api.renderers import JSONRenderer
from library_site.api.responses import encode_json
from library_site.cached_settings import cached_settings
from library_site.db.postgresql.lost_connections import close_lost_connection
from library_site.db.sql import PreparedStatement, Row
from library_site.http.refusals import FAILURE_KEY, Refusal
from oauth.authentication import (
    APIKeyAuthentication,
    BearerAuthentication,
    authenticate_key_and_read,
    find_credential,
)
from oauth.callers import get_caller_key
from oauth.credentials import Credential
from oauth.permissions import LibraryAccess, get_required_scope, require_permission
from oauth.throttling import CallerThrottle, count_request

# Only ids that a column can hold.
BOOK_PATTERN, LIST_PATTERN = re.compile(r"/books/(0|[1-9][0-9]{0,17})"), re.compile("/books")
# From this offset on it is faster to find the first book of the page separately.
DEEP_OFFSET = 1_000
DEEP_OFFSET_SQL = "id >= (SELECT id FROM books_book ORDER BY id LIMIT 1 OFFSET %s)"
# Clients can ask for many different statements. This many of each kind are cached.
CACHED_STATEMENTS = 100
JSON_ACCEPTS = {"", "*/*", "application/json"}
# Own methods in place of REST framework's and django-filter's, for which the compiled routes stand in.
OWN_HOOKS = {
    "library_site.api.viewsets.APIViewSet": "initial perform_authentication check_permissions options"
    " get_serializer_class get_parsers",
    "books.api.views.BookViewSet": "list retrieve create update destroy get_object perform_create perform_update"
    " perform_destroy handle_exception",
    "books.api.v1.views.BookViewSetV1": "destroy options",
    "books.api.v2.views.BookViewSetV2": "list create partial_update get_serializer",
    "books.api.filters.QueryFilterSet": "__init__ get_form_class filter_queryset",
    "books.api.filters.ListFilterBackend": "get_filterset_class",
    "books.api.v1.pagination.SkipLimitPagination": "get_offset get_limit paginate_queryset get_paginated_response"
    " get_paginated_response_schema get_schema_operation_parameters",
    "books.api.pagination.KeysetPagination": "paginate_queryset get_paginated_response get_paginated_response_schema"
    " get_schema_operation_parameters",
    "books.read_model.ReadSerializer": "__init__ get_fields to_representation",
    "books.read_model.BookListSerializer": "to_representation",
}
FRAMEWORKS = ("rest_framework.", "django_filters.", "django.", "builtins.")
STOCK_FILTERS = (ContainsFilter, AvailableFilter, ISBNFilter, WordsFilter, YearFilter)


class BookState(NamedTuple):
    """What the ETag of a book is made of."""

    id: int
    version: int


class Write(NamedTuple):
    """A write that begins: the view, the values of its body, and who does it."""

    view: Any
    values: Mapping[str, Any]
    actor: ActorRef


class Caller(NamedTuple):
    """What the limit of requests reads of a request."""

    META: dict[str, Any]
    auth: Credential | None
    user: None = None


def compile_routes(patterns: Iterable[URLPattern]) -> list[CompiledRoute]:
    """Returns the routes of a version; none for a viewset that has hooks of its own."""
    routes = []
    for pattern in patterns:
        view: Any = getattr(pattern.callback, "cls", None)
        paths = {"books": LIST_PATTERN, "books/<str:book_id>": BOOK_PATTERN}
        if str(pattern.pattern) in paths and is_compilable(view):
            actions: Mapping[str, str] = pattern.callback.actions  # type: ignore[attr-defined]  # REST framework sets it
            responders = CompiledBooks(view).responders
            allow = ", ".join(name.upper() for name in view.http_method_names if is_allowed(name, actions))
            path, name = paths[str(pattern.pattern)], str(pattern.name)
            routes += [
                CompiledRoute(method.upper(), path, name, allow, responders[action])
                for method, action in actions.items()
                if action in responders and method != "head"
            ]
    return routes


def is_allowed(method: str, actions: Mapping[str, str]) -> bool:
    return method in actions or method == "options" or (method == "head" and "get" in actions)


def is_compilable(view: Any) -> bool:
    """Whether a viewset and what it declares have no hooks but those that the compiled routes stand in for."""
    if not issubclass(view, BookViewSet):
        return False
    defaults = {
        "filter_backends": [ListFilterBackend],
        "authentication_classes": [BearerAuthentication, APIKeyAuthentication],
        "permission_classes": [LibraryAccess],
        "throttle_classes": [CallerThrottle] if cached_settings.API_RATE_LIMIT else [],
        "renderer_classes": [JSONRenderer],
        "lookup_field": "pk",
    }
    query = view.queryset.query
    list_serializer = getattr(view.serializer_class.Meta, "list_serializer_class", ListSerializer)
    return (
        all(list_or_value(getattr(view, name)) == value for name, value in defaults.items())
        and query.order_by == ("pk",)
        and not query.where
        and has_only_conditions(view.queryset)
        and has_stock_hooks(view, BookViewSet)
        and has_stock_hooks(view.pagination_class, BasePagination, LimitOffsetPagination)
        and has_stock_hooks(view.serializer_class, ModelSerializer)
        and has_stock_hooks(list_serializer, ListSerializer)
        and has_stock_hooks(view.filterset_class, FilterSet)
        and has_stock_hooks(ListFilterBackend, DjangoFilterBackend)
        and all(type(filter) in STOCK_FILTERS for filter in get_filters(view.filterset_class).values())
        and list_serializer is BookListSerializer
        and compile_serializer(view.serializer_class) is not None
    )


def list_or_value(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def has_stock_hooks(subject: type, *bases: type) -> bool:
    """Whether each method that a base declares is a framework's, or one of OWN_HOOKS."""
    names = {name for base in bases for name in dir(base) if not name.startswith("_") or name == "__init__"}
    return all(is_stock_hook(getattr(subject, name, None)) for name in names)


def is_stock_hook(hook: Any) -> bool:
    # drf-spectacular wraps the actions that it documents.
    function = unwrap(getattr(hook, "fget", None) or getattr(hook, "func", hook))
    if not isfunction(function) and not ismethod(function):
        return True
    owner, _, name = f"{function.__module__}.{function.__qualname__}".rpartition(".")
    if owner.startswith(FRAMEWORKS) or owner not in OWN_HOOKS:
        return owner.startswith(FRAMEWORKS)
    return name in OWN_HOOKS[owner].split() or not hasattr(ModelViewSet, name)


class CompiledBooks:
    """What a viewset does by its hooks; `responders` are by the name of the action."""

    def __init__(self, view: Any) -> None:
        self.view_class = view
        self.representation = cast("Representation", compile_serializer(view.serializer_class))
        self.filters = get_filters(view.filterset_class)
        self.decoders = {action: self.compile_decoder(action) for action in ("create", "update", "partial_update")}
        self.get_book_statement = lru_cache(CACHED_STATEMENTS)(build_book_statement)
        self.get_list_statement = lru_cache(CACHED_STATEMENTS)(ListStatement)
        self.responders: dict[str, Callable[[CompiledRequest], CompiledResponse | None]] = {
            "list": self.list_books,
            "retrieve": self.read_book,
            **({"create": self.create_book} if self.decoders["create"] else {}),
            **{name: partial(self.change_book, name) for name in ("update", "partial_update") if self.decoders[name]},
        }

    def compile_decoder(self, action: str) -> BodyDecoder | None:
        try:
            return make_decoder(self.view_class.body_serializers[action])
        except (KeyError, NotCompilable):
            return None

    def prepare_view(self, action: str, request: CompiledRequest) -> tuple[Any, Representation]:
        """Returns the view and what shows its books. Raises UnknownParameter, ValidationError."""
        view = self.view_class()
        view.action = action
        view.check_query(request.query)
        names = view.get_shown_fields(request.query)
        return view, self.representation if names is None else self.representation.with_fields(names)

    def list_books(self, request: CompiledRequest) -> CompiledResponse | None:
        accept = request.environ.get("HTTP_ACCEPT", "")
        if accept not in JSON_ACCEPTS and choose_format(accept):
            return None
        credential = authorize(request)
        view, representation = self.prepare_view("list", request)
        if view.find_page_errors(request.query):
            return None
        page = view.paginator.paginate_queryset(self.filter_books(request.query.query_params), request.query)
        response = view.paginator.get_paginated_response(self.read_page(page, representation))
        body = encode_json(response.data)
        headers = {name: value for name, value in response.items() if name != "Content-Type"}
        if etag := view.make_list_etag(body):
            headers["ETag"] = etag
            if Conditions.from_environ(request.environ).is_not_modified(etag):
                headers, body = {"ETag": etag}, b""
        return count_response(request, credential, CompiledResponse(200 if body else 304, headers, body))

    def filter_books(self, parameters: Mapping[str, Any]) -> QuerySet[Book]:
        """Raises forms.ValidationError."""
        books: QuerySet[Book] = self.view_class.queryset
        for name, filter in cast("Mapping[str, Any]", self.filters).items():
            if name in parameters:
                books = filter.filter(books, filter.field.clean(str(parameters[name])))
        return books

    def read_page(self, page: Any, representation: Representation) -> list[Any]:
        books, extra_columns = (page.books, page.key_columns) if isinstance(page, KeysetPage) else (page, ())
        rows = self.fetch_rows(representation, books, extra_columns)
        return representation.to_structs(page.cut(rows) if isinstance(page, KeysetPage) else rows)

    def fetch_rows(self, representation: Representation, books: QuerySet[Book], extra: tuple[Column, ...]) -> list[Row]:
        """Each request compiles only the condition; the rest of the statement is cached."""
        if not has_only_conditions(books):
            return list(books.values_list(*representation.columns, *extra))
        try:
            condition, parameters = compile_condition(books)
        except EmptyResultSet:
            return []
        skip, end = books.query.low_mark, books.query.high_mark or 0
        statement = self.get_list_statement(representation, books.query.order_by, extra)
        return statement.fetch_rows(condition, parameters, skip, end - skip)

    def read_book(self, request: CompiledRequest) -> CompiledResponse | None:
        view, representation = self.prepare_view("retrieve", request)
        statement, parameters = self.get_book_statement(representation), (int(request.argument),)
        credential: Credential | None
        if has_only_api_key(request.environ):
            credential, rows = authorize_and_read(request, statement, parameters)
        else:
            credential, rows = authorize(request), statement.fetch_all(parameters)
        if not rows:
            refuse(request, credential, changes.BookNotFound())
            return None
        etag = view.make_etag(BookState(int(request.argument), rows[0][-1]))
        is_known = Conditions.from_environ(request.environ).is_not_modified(etag)
        body = b"" if is_known else encode_json(representation.to_structs(rows)[0])
        return count_response(request, credential, CompiledResponse(304 if is_known else 200, {"ETag": etag}, body))

    def create_book(self, request: CompiledRequest) -> CompiledResponse | None:
        write = self.begin_write("create", request)
        if not write:
            return None
        book = changes.create_book(write.values, write.actor, timezone.now())
        location = f"{request.environ['library.version'].home}/books/{book.id}"
        return self.show(write.view, request, book, 201, Location=location)

    def change_book(self, action: str, request: CompiledRequest) -> CompiledResponse | None:
        write = self.begin_write(action, request)
        if not write:
            return None
        conditions = Conditions.from_environ(request.environ)
        check = (
            None if conditions == NO_CONDITIONS else lambda book: conditions.require_state(write.view.make_etag(book))
        )
        book = changes.change_book(int(request.argument), write.values, check, write.actor, timezone.now())
        return self.show(write.view, request, book, 200)

    def begin_write(self, action: str, request: CompiledRequest) -> Write | None:
        """Returns None where Django must read the body or the query."""
        body = None if request.query.query_params else request.read_body()
        values = None if body is None else cast("BodyDecoder", self.decoders[action])(body)
        if values is None:
            return None
        credential = authorize(request)
        if not is_within_limit(request, credential):
            return None
        # A write is not repeated.
        close_lost_connection()
        request.environ[WRITE_KEY] = True
        view, _ = self.prepare_view(action, request)
        return Write(view, values, find_actor(view.version_name, credential=credential))

    def show(self, view: Any, request: CompiledRequest, book: BookRow, status: int, **headers: str) -> CompiledResponse:
        headers = {"ETag": view.make_etag(book), **headers}
        return CompiledResponse(status, headers, encode_json(self.representation.to_struct(book)))


def authorize(request: CompiledRequest) -> Credential | None:
    """Raises AuthenticationFailed, NotAuthenticated, InsufficientScope; Django words them."""
    scope = get_required_scope(request.environ["REQUEST_METHOD"])
    credential = find_credential(request.environ, frozenset([scope]))
    require_permission(credential, scope)
    return credential


def has_only_api_key(environ: Mapping[str, Any]) -> bool:
    return "HTTP_X_API_KEY" in environ and "HTTP_AUTHORIZATION" not in environ


def authorize_and_read(
    request: CompiledRequest, statement: PreparedStatement, parameters: Sequence[Any]
) -> tuple[Credential, list[Row]]:
    """Reads rows and the API key of the request in one round trip. Raises InvalidKey, InsufficientScope."""
    scope = get_required_scope(request.environ["REQUEST_METHOD"])
    credential, rows = authenticate_key_and_read(request.environ, frozenset([scope]), statement, parameters)
    require_permission(credential, scope)
    return credential, rows


def is_within_limit(request: CompiledRequest, credential: Credential | None) -> bool:
    """Counts the request. To be called when nothing but the limit can hand it to Django."""
    if not cached_settings.API_RATE_LIMIT:
        return True
    caller = cast("Any", Caller(request.environ, credential))
    return count_request(caller, get_caller_key(caller)) == 0


def count_response(
    request: CompiledRequest, credential: Credential | None, response: CompiledResponse
) -> CompiledResponse | None:
    """Returns the response, or None beyond the limit."""
    return response if is_within_limit(request, credential) else None


def refuse(request: CompiledRequest, credential: Credential | None, refusal: Refusal) -> None:
    """Lets Django word a refusal: nothing need be read again. Beyond the limit it words that."""
    if is_within_limit(request, credential):
        request.environ[FAILURE_KEY] = refusal


class ListStatement:
    """The statement of a list in one order, to which a condition can be added."""

    def __init__(self, representation: Representation, order_by: tuple[Any, ...], extra: tuple[Column, ...]) -> None:
        rows = Book.objects.order_by(*order_by).values_list(*representation.columns, *extra)
        sql, _ = rows.query.sql_with_params()
        self.select_sql, keyword, order_sql = sql.partition(" ORDER BY ")
        order_sql = keyword + order_sql
        self.page_sql = f"{order_sql} LIMIT %s OFFSET %s"
        # Clients can choose thousands of sets of fields, too many for PostgreSQL to keep plans for.
        self.reuse_plan = representation.is_whole
        self.statement = PreparedStatement(f"{self.select_sql}{self.page_sql}", self.reuse_plan)
        # PostgreSQL skips the books before the page by reading only the index.
        deep_sql = f"{self.select_sql} WHERE {DEEP_OFFSET_SQL}{order_sql} LIMIT %s"
        self.deep_statement = (
            PreparedStatement(deep_sql, self.reuse_plan) if order_by == ("pk",) and not extra else None
        )

    def fetch_rows(self, condition: str, parameters: Sequence[Any], skip: int, limit: int) -> list[Row]:
        """Returns the rows of one page. An empty condition matches all books."""
        if condition:
            # PostgreSQL plans it anew each time, because a plan that is fast for one text is slow for another.
            statement = PreparedStatement(f"{self.select_sql}{condition}{self.page_sql}", reuse_plan=False)
            return statement.fetch_all((*parameters, limit, skip))
        if self.deep_statement and skip > DEEP_OFFSET:
            return self.deep_statement.fetch_all((skip, limit))
        return self.statement.fetch_all((limit, skip))


def build_book_statement(representation: Representation) -> PreparedStatement:
    """Selects the fields of a book and its version, by its id."""
    sql, _ = Book.objects.filter(pk=0).values_list(*representation.columns, F("version")).query.sql_with_params()
    return PreparedStatement(sql, representation.is_whole)


def compile_condition(books: QuerySet[Book]) -> tuple[str, Sequence[Any]]:
    """Returns the condition of a queryset as SQL, and its parameters.

    Raises EmptyResultSet if it cannot match any book, such as a year that no column can hold.
    """
    if not books.query.where:
        return "", ()
    try:
        sql, parameters = books.query.get_compiler(books.db).compile(books.query.where)
    except FullResultSet:
        return "", ()
    return f" WHERE {sql}", parameters

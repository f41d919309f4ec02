"""Compiled routes of books: they do what the hooks of the shipped viewsets do, without Django and REST framework.

Django handles every other viewset. Deleting this module and its name in `urls` changes no response.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any, cast

from django.core.exceptions import EmptyResultSet, FullResultSet
from django.db.models import F, QuerySet
from django.urls import URLPattern
from django.utils import timezone

from books.api import filters
from books.api.exports import choose_format
from books.history.actors import get_or_create_actor
from books.models import Book
from books.read_model import BookEncoder, Column, find_encoder, find_partial_encoder, has_only_conditions
from books.writing import changes
from library_site.api.compiled_path import CompiledRequest, CompiledResponse, CompiledRoute
from library_site.api.conditions import is_not_modified
from library_site.api.decoding import make_decoder
from library_site.api.responses import encode_json
from library_site.cached_settings import cached_settings
from library_site.db.postgresql.lost_connections import close_lost_connection
from library_site.db.sql import PreparedStatement, Row, SQLCondition
from library_site.http.callers import get_caller_key
from oauth.api_keys import get_credential_and_rows
from oauth.authentication import find_credential
from oauth.credentials import Credential
from oauth.permissions import get_required_scope, require_permission
from oauth.scopes import list_asked
from oauth.throttling import count_request

# By route, the paths that are compiled. The id must fit into the column.
PATHS = {"books": re.compile("/books"), "books/<str:book_id>": re.compile(r"/books/(0|[1-9][0-9]{0,17})")}
JSON_ACCEPTS = {"", "*/*", "application/json"}
# Clients can cause many different statements. The cache keeps so many.
CACHED_STATEMENTS = 1_000
# PostgreSQL would plan each time for a limit or an offset that is a parameter, but not for one of a subquery.
KEPT_OFFSET = " OFFSET (SELECT CAST(%s AS bigint))"
# Lists of these lengths keep their plans; those with cursors read one row more.
KEPT_LIMITS = frozenset((10, 20, 25, 50, 100, 500))
METHODS = {"list": "GET", "retrieve": "GET", "create": "POST", "update": "PUT", "partial_update": "PATCH"}


def compile_pattern(pattern: URLPattern) -> Iterator[CompiledRoute]:
    """Yields the compiled routes of a pattern that ships."""
    callback, path = cast("Any", pattern.callback), PATHS.get(str(pattern.pattern))
    encoder = find_encoder(callback.cls.serializer_class) if path else None
    if path and encoder:
        responders, actions = CompiledBooks(callback.cls, encoder).list_responders(), callback.actions
        methods = {*actions, "options", *(["head"] if "get" in actions else [])}
        allow = ", ".join(name.upper() for name in callback.cls.http_method_names if name in methods)
        for method, action in actions.items():
            if action in responders and method != "head":
                yield CompiledRoute(method.upper(), path, str(pattern.name), allow, responders[action])


class CompiledBooks:
    """Does what a viewset does in its hooks."""

    def __init__(self, view: Any, encoder: BookEncoder) -> None:
        self.view_class, self.encoder = view, encoder
        self.filters = cast("Mapping[str, Any]", filters.get_filters(view.filterset_class))
        # What LibraryAccess asks for an action.
        self.requirements = {
            action: (get_required_scope(method), frozenset(view.required_permissions[action]))
            for action, method in METHODS.items()
        }
        self.decoders = {
            action: make_decoder(serializer)
            for action, serializer in view.body_serializers.items()
            if action in METHODS
        }

    def list_responders(self) -> dict[str, Any]:
        """Returns a responder for each action. It takes a CompiledRequest and returns a CompiledResponse, or None."""
        writes = {action: partial(self.write_book, action) for action in self.decoders}
        return {"list": self.list_books, "retrieve": self.read_book, **writes}

    def prepare_view(self, action: str, request: CompiledRequest) -> tuple[Any, BookEncoder]:
        """Returns the view and the encoder of its books. Raises UnknownParameter, ValidationError."""
        # Django does so when a request starts. A write would not be tried again on another connection.
        close_lost_connection()
        view = self.view_class()
        view.action, view.request = action, SimpleNamespace(version=request.choice.version.name, META=request.environ)
        view.check_query(request.query)
        names = view.get_shown_fields(request.query)
        if names is None:
            return view, self.encoder
        return view, cast("BookEncoder", find_partial_encoder(view.serializer_class, names))

    def list_books(self, request: CompiledRequest) -> CompiledResponse | None:
        accept = request.environ.get("HTTP_ACCEPT", "")
        if accept not in JSON_ACCEPTS and choose_format(accept):
            return None
        credential = self.authorize("list", request)
        view, encoder = self.prepare_view("list", request)
        page = view.paginator.get_page(self.filter_books(request.query.query_params))
        rows = view.paginator.cut(fetch_page(page, encoder, view.paginator.key_columns))
        document, headers = view.paginator.build_document(encoder.to_structs(rows))
        body = encode_json(document)
        if etag := view.make_list_etag(body):
            headers["ETag"] = etag
            if is_not_modified(view.request, etag):
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
        view, encoder = self.prepare_view("retrieve", request)
        statement, pk = build_book_statement(encoder), int(request.argument)
        credential: Credential | None
        if "HTTP_X_API_KEY" in request.environ and "HTTP_AUTHORIZATION" not in request.environ:
            text, (scope, permissions) = request.environ["HTTP_X_API_KEY"], self.requirements["retrieve"]
            asked = permissions | list_asked(scope)
            credential, rows = get_credential_and_rows(text, timezone.now(), asked, statement, (pk,))
            require_permission(credential, scope, permissions)
        else:
            credential, rows = self.authorize("retrieve", request), statement.fetch_all((pk,))
        if rows:
            etag = view.make_etag(SimpleNamespace(id=pk, version=rows[0][-1]))
            is_known = is_not_modified(view.request, etag)
        if not is_within_limit(request, credential):
            return None
        if not rows:
            # The error is the response: Django would read the book again.
            request.is_final = True
            raise changes.BookNotFound
        body = b"" if is_known else encode_json(encoder.to_structs(rows)[0])
        return CompiledResponse(200 if body else 304, {"ETag": etag}, body)

    def write_book(self, action: str, request: CompiledRequest) -> CompiledResponse | None:
        """Returns None if Django must parse the query or the body."""
        body = None if request.query.query_params else request.read_body()
        values = None if body is None else self.decoders[action](body)
        if values is None:
            return None
        credential = self.authorize(action, request)
        if not is_within_limit(request, credential):
            return None
        request.is_final = True
        view, _ = self.prepare_view(action, request)
        actor, now = get_or_create_actor(view.request.version, credential=credential), timezone.now()
        if action == "create":
            book = changes.create_book(values, actor, now)
            status, headers = 201, {"Location": f"{request.choice.version.home}/books/{book.id}"}
        else:
            book = changes.change_book(int(request.argument), values, view.require_state, actor, now)
            status, headers = 200, {}
        body = encode_json(self.encoder.to_struct(book))
        return CompiledResponse(status, {"ETag": view.make_etag(book), **headers}, body)

    def authorize(self, action: str, request: CompiledRequest) -> Credential | None:
        """Raises AuthenticationFailed, NotAuthenticated, PermissionDenied. Django renders them."""
        scope, permissions = self.requirements[action]
        credential = find_credential(request.environ, permissions | list_asked(scope))
        require_permission(credential, scope, permissions)
        return credential


def is_within_limit(request: CompiledRequest, credential: Credential | None) -> bool:
    """Counts the request. Call it last: if Django handled the request afterwards, it would be counted twice."""
    if not cached_settings.API_RATE_LIMIT:
        return True
    caller = cast("Any", SimpleNamespace(META=request.environ, auth=credential, user=None))
    return count_request(caller, get_caller_key(caller)) == 0


def fetch_page(books: QuerySet[Book], encoder: BookEncoder, extra: tuple[Column, ...] = ()) -> list[Row]:
    """Reads a page with these extra columns. Only the condition is compiled each time; the statement is cached."""
    if not has_only_conditions(books):
        return list(books.values_list(*encoder.columns, *extra))
    try:
        condition, parameters = compile_condition(books)
    except EmptyResultSet:
        return []
    skip, end = books.query.low_mark, books.query.high_mark or 0
    page_sql, numbers = "LIMIT %s OFFSET %s", [end - skip, skip]
    if is_plan_kept(books, encoder):
        page_sql, numbers = f"LIMIT {end - skip}{KEPT_OFFSET if skip else ''}", [skip] if skip else []
    statement = build_page_statement(encoder, books.query.order_by, extra, condition, page_sql)
    return statement.fetch_all([*parameters, *numbers])


def is_plan_kept(books: QuerySet[Book], encoder: BookEncoder) -> bool:
    """Whether PostgreSQL keeps the plan. Clients can choose too many combinations of fields and limits, and a plan that
    is fast for one year is slow for another.
    """
    query, conditions = books.query, cast("list[Any]", books.query.where.children)
    limit = (query.high_mark or 0) - query.low_mark
    is_even = all(map(has_even_plan, conditions)) and not (conditions and query.low_mark)
    return encoder.is_whole and is_even and not KEPT_LIMITS.isdisjoint({limit, limit - 1})


def has_even_plan(condition: Any) -> bool:
    """Whether one plan is fast for all values: of a search for texts, and of a page after a key."""
    return isinstance(getattr(condition, "lhs", None), SQLCondition)


@lru_cache(CACHED_STATEMENTS)
def build_page_statement(
    encoder: BookEncoder,
    order_by: tuple[Any, ...],
    extra: tuple[Column, ...],
    condition: str,
    page_sql: str,
) -> PreparedStatement:
    """Its plan is kept if its limit is no parameter."""
    rows = Book.objects.order_by(*order_by).values_list(*encoder.columns, *extra)
    select_sql, _, order_sql = rows.query.sql_with_params()[0].partition(" ORDER BY ")
    return PreparedStatement(f"{select_sql}{condition} ORDER BY {order_sql} {page_sql}", "LIMIT %s" not in page_sql)


@lru_cache(CACHED_STATEMENTS)
def build_book_statement(encoder: BookEncoder) -> PreparedStatement:
    sql, _ = Book.objects.filter(pk=0).values_list(*encoder.columns, F("version")).query.sql_with_params()
    return PreparedStatement(sql, encoder.is_whole)


def compile_condition(books: QuerySet[Book]) -> tuple[str, tuple[Any, ...]]:
    """Returns the SQL condition of a queryset and its parameters. Raises EmptyResultSet if no book can match."""
    if not books.query.where:
        return "", ()
    try:
        sql, parameters = books.query.get_compiler(books.db).compile(books.query.where)
    except FullResultSet:
        return "", ()
    return f" WHERE {sql}", tuple(parameters)

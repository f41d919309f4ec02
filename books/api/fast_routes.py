"""Finds the action of a plain request, for the fast path."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from django.utils import timezone

from books.api import actions
from books.api.actions import Caller
from books.api.conditional import Conditions
from books.api.views import BookViewSet
from library_site.api.query import Query, parse_query
from library_site.db.postgresql.lost_connections import close_lost_connection
from library_site.db.sql import PreparedStatement, Row
from library_site.http.fast_path import Action, Answer, FastRequest, FastRoute
from oauth.authentication import authenticate_key_and_read, find_credential
from oauth.permissions import get_required_scope, require_permission

# Only ids that a column can hold: for others nothing would be fetched, and so no key be checked.
BOOK_PATH = re.compile(r"/books/(0|[1-9][0-9]{0,17})")
LIST_PATH = "/books"
# The actions of the viewset, by method.
CHANGE_ACTIONS = {"PUT": "update", "PATCH": "partial_update"}


def make_routes(view: type[BookViewSet]) -> list[FastRoute]:
    """Makes the routes of a version: one book, a new book, and a page of the list."""
    return [
        partial(find_book_action, view),
        partial(find_create_action, view),
        partial(find_list_action, view),
    ]


def find_book_action(view: type[BookViewSet], request: FastRequest) -> Action | None:
    """Returns the action that reads, changes or deletes one book."""
    match = BOOK_PATH.fullmatch(request.path)
    if not match or (request.query and request.method != "GET"):
        return None
    query, conditions = read_query(request), Conditions.from_environ(request.environ)
    if request.method == "GET" and has_only_api_key(request):
        return partial(actions.read_book, view.profile, match[1], query, conditions, partial(fetch_with_key, request))
    if request.method == "GET":
        authorize(request)
        return partial(actions.read_book, view.profile, match[1], query, conditions)
    if request.method == "DELETE":
        return make_write(actions.delete_book, view.profile, match[1], query, conditions, authorize(request))
    values = decode_values(view, request, CHANGE_ACTIONS.get(request.method))
    if values:
        caller = authorize(request)
        return make_write(actions.change_book, view.profile, match[1], query, values, conditions, caller)
    return None


def find_create_action(view: type[BookViewSet], request: FastRequest) -> Action | None:
    """Returns the action that creates a book."""
    if request.method != "POST" or request.path != LIST_PATH or request.query:
        return None
    values = decode_values(view, request, "create")
    list_path = request.environ["library.version"].home + LIST_PATH
    if values:
        caller = authorize(request)
        return make_write(actions.create_book, view.profile, read_query(request), values, list_path, caller)
    return None


def find_list_action(view: type[BookViewSet], request: FastRequest) -> Action | None:
    """Returns the action that reads a page of the list."""
    if request.method != "GET" or request.path != LIST_PATH:
        return None
    authorize(request)
    conditions = Conditions.from_environ(request.environ)
    return partial(actions.list_books, view.profile, read_query(request), conditions)


def make_write(action: Callable[..., Answer], *arguments: Any) -> Action:
    """Returns an action that writes. It first closes a connection that the database has closed, because a write is
    not repeated.
    """

    def write() -> Answer:
        close_lost_connection()
        return action(*arguments, timezone.now())

    return write


def authorize(request: FastRequest) -> Caller:
    """Returns the caller. Raises AuthenticationFailed, NotAuthenticated, InsufficientScope; Django words them."""
    scope = get_required_scope(request.method)
    credential = find_credential(request.environ, frozenset([scope]))
    require_permission(credential, scope)
    return credential


def has_only_api_key(request: FastRequest) -> bool:
    """Whether the API key is all that must be checked before the rows of a request are read."""
    return "HTTP_X_API_KEY" in request.environ and "HTTP_AUTHORIZATION" not in request.environ and not request.query


def fetch_with_key(request: FastRequest, statement: PreparedStatement, parameters: Sequence[Any]) -> list[Row]:
    """Fetches rows and the API key of the request in one round trip.

    Raises InvalidKey, InsufficientScope; Django finds out once more, and words them.
    """
    scope = get_required_scope(request.method)
    credential, rows = authenticate_key_and_read(request.environ, frozenset([scope]), statement, parameters)
    require_permission(credential, scope)
    return rows


def read_query(request: FastRequest) -> Query:
    return Query(request.environ["PATH_INFO"], parse_query(request.query))


def decode_values(
    view: type[BookViewSet], request: FastRequest, action: str | None
) -> Callable[[], Mapping[str, Any]] | None:
    """Returns a function that returns the members of the body, or None where the serializer must check it."""
    decode = view.decoders.get(action or "")
    body = request.read_body() if decode else None
    values = decode(body) if decode and body is not None else None
    return None if values is None else lambda: values

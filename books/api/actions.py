"""What the API does with books, for all versions: each action takes a version's profile and what a request asks for.

The viewsets and the fast path both call these actions. An action returns an Answer, or raises a Refusal or an
exception of REST framework, which the version's error format words.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, Protocol

import msgspec
from django_filters.rest_framework.filterset import FilterSet
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.settings import api_settings

from books.api.conditional import NO_CONDITIONS, Conditions, PreconditionFailed
from books.api.filters import get_filters, select_books
from books.history.actors import find_actor
from books.history.states import find_state
from books.models import Book, Change
from books.read_model import BookQuery, FetchAll, Representation
from books.rows import BookRow
from books.writing import changes
from books.writing.statements import select_book
from library_site.api.query import INVALID_INTEGER, FieldErrors, Query, UnknownParameter
from library_site.api.responses import encode_json
from library_site.db.integers import parse_integer
from library_site.db.sql import PreparedStatement
from library_site.http.fast_path import Answer
from oauth.credentials import Credential

Values = Mapping[str, Any]
# The credential of a request, or None for an anonymous one.
Caller = Credential | None


class BookPagination(Protocol):
    """A way to page through books. It is created for one request."""

    # The parameters that it reads from a query.
    parameters: tuple[str, ...]

    def read_parameters(self, query: Query) -> FieldErrors:
        """Returns their problems."""

    def build_page(self, query: Query, selection: BookQuery, representation: Representation) -> Answer:
        """Answers a page of these books. To be called after `read_parameters` returned no problems."""


@dataclass(frozen=True)
class VersionProfile:
    """What a version shows and accepts. This one ignores unknown parameters of a query.

    `name` begins its ETags and is the channel of its changes; `deletion` answers DELETE.
    """

    representation: Representation
    name: str
    deletion: Answer
    filterset_class: type[FilterSet]
    pagination_class: type["BookPagination"]

    def validate_query(self, query: Query, known_names: Collection[str] = ()) -> None:
        """Raises an exception if the query is not valid. `known_names` are the parameters that the action knows."""

    def find_problems(self, query: Query) -> FieldErrors:
        """Returns the problems of a query, without those of pages and filters."""
        return {}

    def get_representation(self, query: Query) -> Representation:
        """Returns the representation that an answer uses. To be called after `validate_query`."""
        return self.representation

    def finish_list(self, answer: Answer, conditions: Conditions) -> Answer:
        """Returns the answer of a list; a version may check the conditions. Raises PreconditionFailed."""
        return answer

    def make_etag(self, pk: int, version: int) -> str:
        return f'"{self.name}-{pk}-{version}"'


def list_books(profile: VersionProfile, query: Query, conditions: Conditions) -> Answer:
    """Raises ValidationError, UnknownParameter, PreconditionFailed."""
    paginator = profile.pagination_class()
    profile.validate_query(query, [*get_filters(profile.filterset_class), *paginator.parameters, "fields"])
    problems = paginator.read_parameters(query) | profile.find_problems(query)
    selection = select_books(profile.filterset_class, query.query_params, problems)
    return profile.finish_list(paginator.build_page(query, selection, profile.get_representation(query)), conditions)


def add_etag(answer: Answer, conditions: Conditions) -> Answer:
    """Adds the ETag of its content to the answer, or returns 304. Raises PreconditionFailed."""
    etag = f'"{blake2b(answer.body, digest_size=16).hexdigest()}"'
    if conditions.is_not_modified(etag):
        return Answer(304, {"ETag": etag})
    return answer._replace(headers={**answer.headers, "ETag": etag})


def read_book(
    profile: VersionProfile,
    book_id: str,
    query: Query,
    conditions: Conditions,
    fetch_all: FetchAll = PreparedStatement.fetch_all,
) -> Answer:
    """Raises BookNotFound, PreconditionFailed, ValidationError, UnknownParameter, and what `fetch_all` raises."""
    # Nothing can be wrong with an empty query.
    if query.query_params:
        profile.validate_query(query, ["fields"])
        if problems := profile.find_problems(query):
            raise ValidationError(problems)
    pk = parse_book_id(book_id)
    match = profile.get_representation(query).find_book(pk, fetch_all)
    if not match:
        raise changes.BookNotFound
    book, version = match
    etag = profile.make_etag(pk, version)
    if conditions.is_not_modified(etag):
        return Answer(304, {"ETag": etag})
    return Answer(200, {"ETag": etag}, encode_json(book))


def create_book(
    profile: VersionProfile,
    query: Query,
    read_values: Callable[[], Values],
    list_path: str,
    caller: Caller,
    now: datetime,
) -> Answer:
    """`list_path` is the path of the list. Raises IsbnInUse, ConcurrentChange, ValidationError, UnknownParameter."""
    profile.validate_query(query)
    book = changes.create_book(read_values(), find_actor(profile.name, credential=caller), now)
    return answer_book(profile, book, 201, {"Location": f"{list_path}/{book.id}"})


def change_book(
    profile: VersionProfile,
    book_id: str,
    query: Query,
    read_values: Callable[[], Values],
    conditions: Conditions,
    caller: Caller,
    now: datetime,
) -> Answer:
    """Raises BookNotFound, IsbnInUse, ConcurrentChange, PreconditionFailed, ValidationError, UnknownParameter."""
    profile.validate_query(query)
    values = read_values()

    require_state = None if conditions == NO_CONDITIONS else make_state_check(profile, conditions)
    pk, actor = parse_book_id(book_id), find_actor(profile.name, credential=caller)
    book = changes.change_book(pk, values, require_state, actor, now)
    return answer_book(profile, book, 200, {})


def delete_book(
    profile: VersionProfile, book_id: str, query: Query, conditions: Conditions, caller: Caller, now: datetime
) -> Answer:
    """Raises BookNotFound, ConcurrentChange, PreconditionFailed, ValidationError, UnknownParameter."""
    profile.validate_query(query)
    pk, actor = parse_book_id(book_id), find_actor(profile.name, credential=caller)
    changes.delete_book(pk, make_state_check(profile, conditions), actor, now)
    return profile.deletion


def revert_book(
    profile: VersionProfile,
    book_id: str,
    query: Query,
    read_version: Callable[[], int],
    conditions: Conditions,
    caller: Caller,
    now: datetime,
) -> Answer:
    """Gives a book the members that it had at an earlier version.

    Raises BookNotFound, UnknownVersion, IsbnInUse, ConcurrentChange, PreconditionFailed, ValidationError,
    UnknownParameter.
    """

    def read_values() -> Values:
        version, pk = read_version(), parse_book_id(book_id)
        require_book_exists(pk)
        return find_state(pk, version)

    return change_book(profile, book_id, query, read_values, conditions, caller, now)


def restore_book(
    profile: VersionProfile,
    book_id: str,
    query: Query,
    conditions: Conditions,
    list_path: str,
    caller: Caller,
    now: datetime,
) -> Answer:
    """Brings a deleted book back. `list_path` is the path of the list.

    Raises BookNotFound, BookExists, IsbnInUse, ConcurrentChange, PreconditionFailed, ValidationError, UnknownParameter.
    """
    profile.validate_query(query)
    pk, actor = parse_book_id(book_id), find_actor(profile.name, credential=caller)
    require_deleted(profile, pk, conditions)
    book = changes.restore_book(pk, actor, now)
    return answer_book(profile, book, 201, {"Location": f"{list_path}/{book.id}"})


def require_deleted(profile: VersionProfile, pk: int, conditions: Conditions) -> None:
    """Raises BookNotFound, BookExists, and PreconditionFailed: a deleted book has no state that If-Match could name."""
    book = select_book(pk)
    if book:
        conditions.require_state(profile.make_etag(pk, book.version))
        raise changes.BookExists
    if conditions.if_match is not None:
        require_known_book(pk)
        raise PreconditionFailed


def make_state_check(profile: VersionProfile, conditions: Conditions) -> changes.RequireState:
    """Returns a function that raises PreconditionFailed."""

    def require_state(book: BookRow) -> None:
        conditions.require_state(profile.make_etag(book.id, book.version))

    return require_state


def answer_book(profile: VersionProfile, book: BookRow, status: int, headers: Mapping[str, str]) -> Answer:
    struct: msgspec.Struct = profile.representation.to_struct(book)
    return Answer(status, {"ETag": profile.make_etag(book.id, book.version), **headers}, encode_json(struct))


def parse_book_id(book_id: str, problems: Any = ()) -> int:
    """Returns the integer of the path. Raises ValidationError unless it is ASCII digits with an optional minus.

    `problems` are the other problems of the request; the exception names them, too.
    """
    number = parse_integer(book_id)
    if number is None:
        raise ValidationError({"book_id": [INVALID_INTEGER], **dict(problems)})
    return number


def check_existence_first(book_id: str, error: Exception, require_exists: Callable[[int], None]) -> None:
    """Raises the exception that comes before this error: what `require_exists` raises for the id, or ValidationError
    for a malformed id.
    """
    if isinstance(error, ParseError):
        require_exists(parse_book_id(book_id, {api_settings.NON_FIELD_ERRORS_KEY: [error.detail]}))
    elif isinstance(error, ValidationError | UnknownParameter):
        require_exists(parse_book_id(book_id, error.detail))


def require_book_exists(pk: int) -> None:
    """Raises BookNotFound if no book has this id."""
    if not Book.objects.filter(pk=pk).exists():
        raise changes.BookNotFound


def require_known_book(pk: int) -> None:
    """Raises BookNotFound if no book has this id and the history knows of none."""
    if not Book.objects.filter(pk=pk).exists() and not Change.objects.filter(book_id=pk).exists():
        raise changes.BookNotFound

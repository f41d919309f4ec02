"""Many changes of books in one transaction: all of them, or none."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction
from rest_framework import serializers
from rest_framework.exceptions import APIException, ErrorDetail, ValidationError
from rest_framework.settings import api_settings

from books import changes
from books.models import Book
from library_site.api.query import FieldErrors
from library_site.api.serializers import RejectUnknownMixin

MAX_OPERATIONS = 1_000
# In bytes.
MAX_BODY_BYTES = 16 * 1024 * 1024


class BulkFailed(APIException):
    """Some operations cannot be carried out; problems are named `17.isbn`, after the operation's place from 0."""

    default_detail = "Nothing was changed: not every operation can be carried out"
    default_code = "bulk_refused"

    def __init__(self, problems: FieldErrors) -> None:
        super().__init__(dict(sorted(problems.items(), key=lambda named: int(named[0].partition(".")[0]))))
        codes = {problem.code for found in problems.values() for problem in found}
        self.status_code = 409 if codes == {CONFLICT} else 422


class VersionMismatch(Exception):
    """The book is at another version than the operation asks for."""


CONFLICT = "conflict"
BookLink = Callable[[int], str]


class Operation(NamedTuple):
    op: str
    pk: int
    version: int | None
    values: Mapping[str, Any]


OperationSerializers = Mapping[str, serializers.Serializer[Any]]
"""A version's serializer for each operation, by its name."""


def parse_operations(raw: Sequence[Any], rules: OperationSerializers) -> tuple[dict[int, Operation], FieldErrors]:
    """The operations that are right, by their place, and what is wrong with others."""
    found: dict[int, Operation] = {}
    problems: FieldErrors = {}
    for place, one in enumerate(raw):
        try:
            found[place] = parse_operation(one, rules)
        except ValidationError as error:
            problems |= prefix_problems(place, error.detail)
    return found, problems


class OperationsField(serializers.ListField):
    def to_internal_value(self, data: Any) -> Any:
        # Before it looks at every one.
        if isinstance(data, list) and len(data) > MAX_OPERATIONS:
            self.fail("max_length", max_length=MAX_OPERATIONS)
        return super().to_internal_value(data)


class OperationsSerializer(RejectUnknownMixin):
    operations = OperationsField(min_length=1, max_length=MAX_OPERATIONS)


def parse_operation(raw: Any, rules: OperationSerializers) -> Operation:
    """Raises ValidationError."""
    named = raw.get("op") if isinstance(raw, dict) else None
    if not isinstance(named, str) or named not in rules:
        raise ValidationError({"op": [ErrorDetail(f"It is one of {', '.join(rules)}.", "enum")]})
    one = rules[named].run_validation(raw)
    return Operation(named, one.get("id", 0), one.get("version"), one.get("book", {}))


def prefix_problems(place: int, details: Any) -> FieldErrors:
    """Problems of one operation; those of its book by the book's own members."""
    flat: FieldErrors = {}
    for name, found in details.items():
        inside = found if isinstance(found, dict) else {api_settings.NON_FIELD_ERRORS_KEY: found}
        for member, problems in inside.items():
            named = name if member == api_settings.NON_FIELD_ERRORS_KEY else member
            flat.setdefault(f"{place}.{named}", []).extend(problems)
    return flat


def run_operations(
    operations: Mapping[int, Operation], problems: FieldErrors, address: BookLink, now: datetime, dry_run: bool
) -> list[dict[str, Any]]:
    """Carries all out in their order; answers `op`, `id` and `version` of each. A dry run changes nothing.

    Raises BulkRefused, ChangedMeanwhile; nothing is changed then. `problems` are what `read` found, and `address` is
    where the book with an id is.
    """
    refused: dict[int, Exception] = {}
    results = []
    with transaction.atomic():
        books = changes.lock_books([one.pk for one in operations.values() if one.op != "create"])
        for place, one in operations.items():
            try:
                with transaction.atomic():
                    results.append({"op": one.op, **run_operation(one, books, now)})
            except (changes.BookNotFound, changes.IsbnInUse, VersionMismatch) as error:
                refused[place] = error
        transaction.set_rollback(dry_run or bool(refused or problems))
    if refused or problems:
        raise BulkFailed(problems | describe_failures(refused, address))
    # No book has the ids that a dry run gave.
    return [{**one, "id": None} if dry_run and one["op"] == "create" else one for one in results]


def describe_failures(refused: Mapping[int, Exception], address: BookLink) -> FieldErrors:
    """Comes after the roll-back: a book that one of the operations created has nothing to be linked by."""
    found = {place: describe_failure(error, address) for place, error in refused.items()}
    return {f"{place}.{name}": [ErrorDetail(words, code)] for place, (name, words, code) in found.items()}


def describe_failure(error: Exception, address: BookLink) -> tuple[str, str, str]:
    """Member, words and code."""
    if isinstance(error, changes.BookNotFound):
        return "id", "Book not found", "not_found"
    if isinstance(error, changes.IsbnInUse):
        holder = error.holder()
        return "isbn", f"The book at {address(holder)} has it" if holder else "Another book has this isbn", CONFLICT
    return "version", "The book is at another version", CONFLICT


def run_operation(one: Operation, books: dict[int, Book], now: datetime) -> dict[str, Any]:
    """Raises BookNotFound, IsbnInUse, OtherVersion, ChangedMeanwhile."""
    if one.op == "create":
        book = changes.add_book(one.values, now)
        return {"id": book.pk, "version": book.version}
    if one.pk not in books:
        raise changes.BookNotFound
    if one.version not in (None, books[one.pk].version):
        raise VersionMismatch
    if one.op == "delete":
        changes.delete_book(books.pop(one.pk), now)
        return {"id": one.pk}
    # A copy, since a change that is refused has been made to the object by then.
    book = copy(books[one.pk])
    changes.apply_change(book, one.values, now)
    books[one.pk] = book
    return {"id": one.pk, "version": book.version}

"""Applies many changes of books in one transaction: all of them, or none."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.exceptions import APIException, ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.settings import api_settings

from books.api.bulk_body import MAX_ITEMS, parse_slice
from books.api.ids import find_holder_url, name_holder
from books.book_values import BookValues
from books.history.actors import ActorRef, record_operation
from books.models import Book, Operation
from books.operations.tasks import BULK
from books.writing import changes
from library_site.api.query import FieldErrors
from library_site.api.serializers import RejectUnknownMixin

MAX_BODY_BYTES = 16 * 1024 * 1024
CONFLICT_CODE = "conflict"


class BulkFailed(APIException):
    """Some items cannot be applied.

    Errors have names such as `17.isbn`: the index of the item, from 0, and the field.
    """

    default_detail = "Nothing was changed: not every operation can be carried out"
    default_code = "bulk_refused"

    def __init__(self, errors: FieldErrors) -> None:
        super().__init__(dict(sorted(errors.items(), key=lambda item: int(item[0].partition(".")[0]))))
        codes = {error.code for details in errors.values() for error in details}
        self.status_code = 409 if codes == {CONFLICT_CODE} else 422


class VersionMismatch(Exception):
    """The book is at another version than the item expects."""


class BulkItem(NamedTuple):
    op: str
    pk: int
    version: int | None
    values: Mapping[str, Any]


# The serializer of each kind of item, in this version.
ItemSerializers = Mapping[str, serializers.Serializer[Any]]


class BulkSerializer(RejectUnknownMixin):
    operations = serializers.ListField(min_length=1, max_length=MAX_ITEMS)


def parse_items(documents: Sequence[Any], rules: ItemSerializers) -> tuple[dict[int, BulkItem], FieldErrors]:
    """Returns the valid items by index, and the errors of the others. Raises ParseError.

    The items are slices of a document from `split_body`.
    """
    items_by_index: dict[int, BulkItem] = {}
    errors: FieldErrors = {}
    for index, item in enumerate(documents):
        try:
            items_by_index[index] = parse_item(parse_slice(item), rules)
        except ValidationError as error:
            errors |= prefix_errors(index, error.detail)
    return items_by_index, errors


def parse_item(item: Any, rules: ItemSerializers) -> BulkItem:
    """Raises ValidationError."""
    op = item.get("op") if isinstance(item, dict) else None
    if not isinstance(op, str) or op not in rules:
        raise ValidationError({"op": [ErrorDetail(f"It is one of {', '.join(rules)}.", "enum")]})
    values = rules[op].run_validation(item)
    return BulkItem(op, values.get("id", 0), values.get("version"), values.get("book", {}))


def prefix_errors(index: int, details: Any) -> FieldErrors:
    """Prefixes the names of an item's errors with its index. Errors of the item's book are named by field."""
    prefixed: FieldErrors = {}
    for name, detail in details.items():
        errors_by_field = detail if isinstance(detail, dict) else {api_settings.NON_FIELD_ERRORS_KEY: detail}
        for field, errors in errors_by_field.items():
            label = name if field == api_settings.NON_FIELD_ERRORS_KEY else field
            prefixed.setdefault(f"{index}.{label}", []).extend(errors)
    return prefixed


def apply_items(
    items: Mapping[int, BulkItem],
    errors: FieldErrors,
    books: QuerySet[Book],
    request: Request,
    actor: ActorRef,
    now: datetime,
    dry_run: bool,
) -> list[dict[str, Any]]:
    """Applies the items in order. Returns `op`, `id` and `version` of each. A dry run changes nothing.

    `errors` are the errors from `parse_items`; `books` are the books that the client may change. Raises BulkFailed,
    ConcurrentChange; then nothing is changed.
    """
    failures: dict[int, Exception] = {}
    results: list[dict[str, Any]] = []
    changed: set[tuple[str, int]] = set()
    with transaction.atomic():
        actor = record_operation(BULK, actor, now)
        rows = changes.lock_books([item.pk for item in items.values() if item.op != "create"], books)
        for index, item in items.items():
            try:
                with transaction.atomic():
                    if item.pk in rows:
                        rows |= changes.lock_again({item.pk: rows.pop(item.pk)})
                    former = rows.get(item.pk)
                    result = apply_item(item, rows, actor, now)
                results.append({"op": item.op, **result})
                if former is None or former.version != result.get("version"):
                    changed.add((item.op, result["id"]))
            except (changes.BookNotFound, changes.BookProtected, changes.IsbnInUse, VersionMismatch) as error:
                failures[index] = error
        counts = Counter(op for op, _pk in changed)
        Operation.objects.filter(pk=actor.operation_id or 0).update(changed=counts.total(), result=counts)
        transaction.set_rollback(dry_run or bool(failures or errors))
    if failures or errors:
        raise BulkFailed(errors | describe_failures(failures, books, request))
    # The books that a dry run created do not exist, so their ids are not shown.
    return [{**result, "id": None} if dry_run and result["op"] == "create" else result for result in results]


def describe_failures(failures: Mapping[int, Exception], books: QuerySet[Book], request: Request) -> FieldErrors:
    """Call it after the rollback, so that no error links to a book that one of the items created."""
    errors: FieldErrors = {}
    for index, error in failures.items():
        if isinstance(error, changes.BookNotFound):
            errors[f"{index}.id"] = [ErrorDetail("Book not found", "not_found")]
        elif isinstance(error, changes.IsbnInUse):
            url = find_holder_url(error.isbn, books, request)
            errors[f"{index}.isbn"] = [ErrorDetail(name_holder(url) if url else error.default_detail, CONFLICT_CODE)]
        elif isinstance(error, changes.BookProtected):
            errors[f"{index}.id"] = [ErrorDetail(error.default_detail, CONFLICT_CODE)]
        else:
            errors[f"{index}.version"] = [ErrorDetail("The book is at another version", CONFLICT_CODE)]
    return errors


def apply_item(item: BulkItem, books: dict[int, BookValues], actor: ActorRef, now: datetime) -> dict[str, Any]:
    """Raises BookNotFound, IsbnInUse, VersionMismatch, ConcurrentChange."""
    if item.op == "create":
        book = changes.create_book(item.values, actor, now)
        return {"id": book.id, "version": book.version}
    if item.pk not in books:
        raise changes.BookNotFound
    if item.version not in (None, books[item.pk].version):
        raise VersionMismatch
    if item.op == "delete":
        changes.delete_books([books.pop(item.pk)], actor, now)
        return {"id": item.pk}
    book = changes.change_locked_book(books[item.pk], item.values, actor, now)
    books[item.pk] = book
    return {"id": book.id, "version": book.version}

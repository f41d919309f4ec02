"""A program with the client that openapi-python-client makes of the document: `program.py URL KEY`."""

import sys
import time
from http import HTTPStatus

from library_api_client import AuthenticatedClient
from library_api_client.api.books import change_book, change_books, create_book, list_books, read_book, revert_book
from library_api_client.api.history import list_book_changes
from library_api_client.api.operations import begin_operation, list_operations, read_operation
from library_api_client.api.webhooks import list_events
from library_api_client.models import (
    BookChange,
    BookCreate,
    BookFilter,
    BulkRequest,
    BulkUpdate,
    BulkUpdateOp,
    ListEventsKindsItem,
    OperationRequest,
    OperationRequestKind,
    OperationState,
    RevertRequest,
)

url, key = sys.argv[1:]
client = AuthenticatedClient(url, token=key, prefix="", auth_header_name="X-API-Key")

seen, cursor = [], {}
while True:
    page = list_books.sync(client=client, limit=7, **cursor)
    seen += [book.id for book in page.results]
    if not page.next_:
        break
    cursor = {"cursor": page.next_.partition("cursor=")[2].partition("&")[0]}
assert len(seen) == len(set(seen)) >= 20
assert list_books.sync(client=client, author="nobody at all").results == []

new = BookCreate(title="Lalka", author="Bolesław Prus", year=1890, isbn="978-83-7327-189-0", genre="Novel")
created = create_book.sync_detailed(client=client, body=new, idempotency_key="lalka-1")
repeated = create_book.sync_detailed(client=client, body=new, idempotency_key="lalka-1")
assert (created.status_code, repeated.status_code) == (HTTPStatus.CREATED, HTTPStatus.CREATED)
assert created.parsed.id == repeated.parsed.id
pk, etag = created.parsed.id, created.headers["ETag"]

changed = change_book.sync_detailed(pk, client=client, body=BookChange(year=1889), if_match=etag)
assert (changed.status_code, changed.parsed.year) == (HTTPStatus.OK, 1889)
late = change_book.sync_detailed(pk, client=client, body=BookChange(year=1), if_match=etag)
assert (late.status_code, late.parsed.error.code.value) == (HTTPStatus.PRECONDITION_FAILED, "PRECONDITION_FAILED")

items = BulkRequest(operations=[BulkUpdate(op=BulkUpdateOp.UPDATE, id=pk, book=BookChange(available=False))])
assert change_books.sync(client=client, body=items).results[0].id == pk
assert [entry.kind.value for entry in list_book_changes.sync(pk, client=client).results] == [
    "changed",
    "changed",
    "created",
]
assert revert_book.sync(pk, client=client, body=RevertRequest(version=1)).year == 1890

request = OperationRequest(kind=OperationRequestKind.EDIT, filter_=BookFilter(isbn="978-83-7327-189-0"))
request.set_ = BookChange(genre="Classic")
operation = begin_operation.sync(client=client, body=request)
while operation.state in (OperationState.WAITING, OperationState.RUNNING):
    time.sleep(0.2)
    operation = read_operation.sync(operation.id, client=client)
assert (operation.state, operation.changed) == (OperationState.DONE, 1)
assert list_operations.sync(client=client).results[0].id == operation.id
assert read_book.sync(pk, client=client).genre == "Classic"

kinds = [ListEventsKindsItem.BOOK_CREATED, ListEventsKindsItem.BOOK_UPDATED]
events = list_events.sync(client=client, kinds=kinds).results
assert {event.event.value for event in events} == {"book.created", "book.updated"}

"""Idempotency-Key: a request that is sent again is answered again, and carried out once."""

from datetime import timedelta
from io import BytesIO
from typing import Any

import httpx
import pytest
from django.db.models import F
from django.http import HttpResponse
from django.test import RequestFactory
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from books.api.idempotency import idempotent
from books.models import Book, StoredResponse
from books.writing.changes import ConcurrentChange
from library_site.api.viewsets import APIViewSet
from library_site.http.api_errors import APIError
from library_site.jobs.expiry import delete_expired
from tests.support.applications import open_client
from tests.support.books import build_book
from tests.support.oauth_flows import create_key_header, create_librarian
from tests.support.pages import parse_error
from tests.support.replays import KEY, is_replayed, require_replay

BOOKS = "/api/v2/books"
BULK = "/api/v2/books/bulk"
NEW = (201, False)


@pytest.fixture
def librarian_key(db: None) -> dict[str, str]:
    """KEY, sent by a librarian."""
    return {**KEY, **create_key_header(create_librarian())}


def build_operations(*books: dict[str, Any]) -> dict[str, Any]:
    return {"operations": [{"op": "create", "book": book} for book in books]}


def get_outcome(response: httpx.Response) -> tuple[int, bool]:
    return response.status_code, is_replayed(response)


def test_the_first_response_is_repeated_whatever_changed_since(api: httpx.Client) -> None:
    body = build_book()
    first = api.post(BOOKS, json=body, headers=KEY)
    assert first.status_code == 201
    require_replay(first, api.post(BOOKS, json=body, headers=KEY))
    api.patch(first.headers["Location"], json={"year": 2000})
    require_replay(first, api.post(BOOKS, json=body, headers=KEY))
    api.delete(first.headers["Location"])
    require_replay(first, api.post(BOOKS, json=body, headers=KEY))
    assert Book.objects.count() == 0


def test_different_keys_are_different_requests(api: httpx.Client, librarian_key: dict[str, str]) -> None:
    keys = ["a", "A", "a-", "~" * 255, "~" * 254, '"quoted"', "a,b"]
    responses = [api.post(BOOKS, json=build_book(), headers={**librarian_key, "Idempotency-Key": key}) for key in keys]
    assert [get_outcome(response) for response in responses] == [NEW] * len(keys)


def test_a_key_is_not_for_another_request(api: httpx.Client, librarian_key: dict[str, str]) -> None:
    body = build_book()
    first = api.post(BOOKS, json=body, headers=librarian_key)
    responses = [
        api.post(BOOKS, json={**body, "shelf": 1}, headers=librarian_key),
        api.post(BOOKS, content=b"{", headers=librarian_key),
        api.post(BOOKS, headers=librarian_key),
        api.post(BULK, json=body, headers=librarian_key),
        api.post(f"{BOOKS}?shelf=1", json=body, headers=librarian_key),
    ]
    assert [parse_error(response) for response in responses] == [(422, "VALIDATION_ERROR", [])] * len(responses)
    assert "This Idempotency-Key came with another request before" in responses[0].text
    assert not any(is_replayed(response) for response in responses)
    assert Book.objects.count() == 1
    require_replay(first, api.post(BOOKS, json=body, headers=librarian_key))


def test_anonymous_callers_of_one_address_may_use_the_same_key(api: httpx.Client) -> None:
    """They may be different people behind one proxy, who know nothing of each other's keys."""
    requests = [
        (BOOKS, build_book()),
        (BOOKS, build_book()),
        (BULK, build_operations(build_book())),
        (f"{BULK}?dry_run=true", build_operations(build_book())),
    ]
    responses = [api.post(address, json=body, headers=KEY) for address, body in requests]
    assert [get_outcome(response) for response in responses] == [NEW, NEW, (200, False), (200, False)]
    for (address, body), first in zip(requests, responses, strict=True):
        require_replay(first, api.post(address, json=body, headers=KEY))
    assert Book.objects.count() == 3


class ShelfIsFull(APIError):
    status_code = 409
    default_detail = "The shelf is full"


class ShelfViewSet(APIViewSet):
    """Names nothing of books. Each request is refused by the next of its refusals."""

    permission_classes = []
    body_serializers = {"create": Serializer}
    refusals = iter(())

    @idempotent
    def create(self, request: Request) -> HttpResponse:
        raise next(self.refusals)


@pytest.mark.parametrize(("refusal", "is_stored"), [(ShelfIsFull, True), (ConcurrentChange, False)])
def test_a_conflict_of_any_kind_is_stored_unless_it_passes(
    rf: RequestFactory, db: None, refusal: type[APIError], is_stored: bool
) -> None:
    view = ShelfViewSet.as_view({"post": "create"}, refusals=iter([refusal(), refusal()]))
    responses = []
    for _ in range(2):
        request = rf.post("/api/v2/shelves", {}, "application/json", headers=KEY)
        request.META["wsgi.input"] = BytesIO(b"{}")
        responses.append(view(request))
    assert [response.status_code for response in responses] == [409, 409]
    assert ["Idempotent-Replayed" in response for response in responses] == [False, is_stored]


def test_a_refusal_is_stored(api: httpx.Client, librarian_key: dict[str, str]) -> None:
    for number, (address, body, status) in enumerate(
        [
            (BOOKS, b'{"title": 1}', 422),
            (BOOKS, b"[]", 422),
            (BOOKS, b"{", 400),
            (BULK, b'{"operations": [{"op": "delete", "id": 987654321}]}', 422),
            (BULK, b"{", 400),
        ]
    ):
        headers = {**librarian_key, "Idempotency-Key": str(number)}
        first, repetition = [api.post(address, content=body, headers=headers) for _ in range(2)]
        assert first.status_code == status
        require_replay(first, repetition)


def test_clients_of_different_addresses_may_use_the_same_key(api: httpx.Client) -> None:
    addresses = ["127.0.0.1", "192.0.2.1", "2001:db8::1", "2001:db8:0:1::1"]
    responses = [open_client(address).post(BOOKS, json=build_book(), headers=KEY) for address in addresses]
    assert [get_outcome(response) for response in responses] == [NEW] * len(addresses)
    # Even if they send the same.
    body = build_book()
    responses = [open_client(address).post(BOOKS, json=body, headers=KEY) for address in addresses[:2]]
    assert [get_outcome(response) for response in responses] == [NEW, (409, False)]


def age_responses(age: timedelta) -> None:
    """Makes the stored responses older by this time."""
    StoredResponse.objects.update(stored_at=F("stored_at") - age)


def test_a_response_is_cleared_after_a_day(api: httpx.Client) -> None:
    body = build_book()
    for age, outcome in ((timedelta(hours=24, minutes=-1), (201, True)), (timedelta(minutes=1), (409, False))):
        api.post(BOOKS, json=body, headers=KEY)
        age_responses(age)
        assert delete_expired(timezone.now())["kept answers"] == (not outcome[1])
        assert get_outcome(api.post(BOOKS, json=body, headers=KEY)) == outcome


def test_after_a_day_a_request_is_new(api: httpx.Client, librarian_key: dict[str, str]) -> None:
    """The key of a librarian leads to the first response, whatever is sent with it."""
    api.post(BOOKS, json=build_book(), headers=librarian_key)
    age_responses(timedelta(hours=24))
    body = build_book()
    second = api.post(BOOKS, json=body, headers=librarian_key)
    assert get_outcome(second) == NEW
    require_replay(second, api.post(BOOKS, json=body, headers=librarian_key))


def test_a_bad_key_is_refused(api: httpx.Client) -> None:
    keys = ["", " ", "a b", "a\tb", "\x7f", "a" * 256]
    responses = [api.post(BOOKS, json=build_book(), headers={"Idempotency-Key": key}) for key in keys]
    responses.append(api.post(BULK, json=build_operations(build_book()), headers={"Idempotency-Key": ""}))
    error = (422, "VALIDATION_ERROR", ["Idempotency-Key"])
    assert [parse_error(response) for response in responses] == [error] * len(responses)
    assert Book.objects.count() == 0


def test_a_key_on_another_method_is_ignored(api: httpx.Client) -> None:
    headers = {"Idempotency-Key": "a bad one"}
    address = api.post(BOOKS, json=build_book()).headers["Location"]
    responses = [
        api.get(address, headers=headers),
        api.put(address, json=build_book(), headers=headers),
        api.patch(address, json={"year": 2000}, headers=headers),
        api.patch(address, json={"year": 3000}, headers=headers),
        api.delete(address, headers=headers),
        api.delete(address, headers=headers),
    ]
    assert [response.status_code for response in responses] == [200, 200, 200, 200, 204, 404]
    assert not any(is_replayed(response) for response in responses)
    assert responses[3].json()["year"] == 3000


def test_version_1_ignores_keys(api: httpx.Client) -> None:
    body = build_book()
    responses = [api.post("/api/books", json=body, headers=KEY) for _ in range(2)]
    assert [response.status_code for response in responses] == [201, 409]


def test_a_request_whose_body_is_not_read_does_not_use_up_its_key(api: httpx.Client) -> None:
    refusals = [
        api.post(BOOKS, content=b"a", headers={**KEY, "Content-Type": "text/plain"}),
        api.post(BOOKS, content=b" " * 2 * 2**20, headers=KEY),
    ]
    assert [response.status_code for response in refusals] == [415, 413]
    assert api.post(BOOKS, json=build_book(), headers=KEY).status_code == 201

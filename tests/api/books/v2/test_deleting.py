"""DELETE /api/v2/books/{book_id}."""

import httpx
import pytest

from tests.support.books import build_book
from tests.support.pages import parse_error
from tests.support.server import Service

BOOKS = "/api/v2/books"
UNKNOWN = f"{BOOKS}/987654321"


@pytest.fixture
def creation(api: httpx.Client) -> httpx.Response:
    return api.post(BOOKS, json=build_book())


@pytest.fixture
def address(creation: httpx.Response) -> str:
    return creation.headers["Location"]


def test_a_deleted_book_is_gone(api: httpx.Client, address: str) -> None:
    answer = api.delete(address)
    assert (answer.status_code, answer.content) == (204, b"")
    assert "Content-Type" not in answer.headers
    answers = [
        api.get(address),
        api.put(address, json=build_book()),
        api.patch(address, json={"year": 2000}),
        api.delete(address),
        api.get(address.replace("/v2", "")),
    ]
    assert [answer.status_code for answer in answers] == [404] * 5
    assert api.get(BOOKS).json()["results"] == []


def test_an_unknown_book_is_not_found(api: httpx.Client) -> None:
    answer = api.delete(UNKNOWN)
    assert answer.status_code == 404
    assert answer.json() == {
        "error": {
            "code": "NOT_FOUND",
            "message": "Book not found",
            "requestId": answer.headers["X-Request-ID"],
        }
    }


def test_only_the_book_named_is_deleted(api: httpx.Client, address: str) -> None:
    other = api.post(BOOKS, json=build_book()).json()
    api.delete(address)
    assert api.get(BOOKS).json()["results"] == [other]


def test_the_body_of_a_deletion_is_ignored(api: httpx.Client, address: str) -> None:
    answer = api.request("DELETE", address, content=b"{", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 204


@pytest.mark.parametrize(
    "headers", [{"If-Match": '"of another time"'}, {"If-Match": "W/{etag}"}, {"If-None-Match": "{etag}"}]
)
def test_a_book_in_another_state_is_left_alone(
    api: httpx.Client, creation: httpx.Response, address: str, headers: dict[str, str]
) -> None:
    conditions = {name: value.format(etag=creation.headers["ETag"]) for name, value in headers.items()}
    assert parse_error(api.delete(address, headers=conditions)) == (412, "PRECONDITION_FAILED", [])
    assert api.get(address).json() == creation.json()


@pytest.mark.parametrize("value", ["{etag}", "*", '"of another time", {etag}'])
def test_a_book_in_the_state_asked_for_is_deleted(
    api: httpx.Client, creation: httpx.Response, address: str, value: str
) -> None:
    answer = api.delete(address, headers={"If-Match": value.format(etag=creation.headers["ETag"])})
    assert answer.status_code == 204
    assert api.get(address).status_code == 404


def test_the_first_failing_check_is_answered(api: httpx.Client, address: str) -> None:
    stale_headers = {"If-Match": '"of another time"'}
    answers = [
        api.delete(f"{UNKNOWN}?shelf=1", headers=stale_headers),
        api.delete(f"{BOOKS}/first?shelf=1", headers=stale_headers),
        api.delete(f"{address}?shelf=1", headers=stale_headers),
        api.delete(address, headers=stale_headers),
    ]
    assert [parse_error(answer) for answer in answers] == [
        (404, "NOT_FOUND", []),
        (422, "VALIDATION_ERROR", ["book_id", "shelf"]),
        (400, "UNKNOWN_PARAMETER", ["shelf"]),
        (412, "PRECONDITION_FAILED", []),
    ]


@pytest.mark.parametrize("book_id", ["first", "1.0", "+1", "0x1", "--1", "%20"])
def test_an_id_is_an_integer(api: httpx.Client, book_id: str) -> None:
    answers = [
        api.delete(f"{BOOKS}/{book_id}"),
        api.patch(f"{BOOKS}/{book_id}", json={"year": "1984"}),
        api.put(f"{BOOKS}/{book_id}", content=b"{"),
    ]
    assert [answer.status_code for answer in answers] == [422] * 3
    assert [answer.json()["error"]["details"][0]["field"] for answer in answers] == ["book_id"] * 3


@pytest.mark.parametrize("book_id", ["0", "-1", str(2**63), "9" * 5000])
def test_an_integer_of_no_book_is_not_found(api: httpx.Client, book_id: str) -> None:
    answers = [api.delete(f"{BOOKS}/{book_id}"), api.patch(f"{BOOKS}/{book_id}", json={"year": 1})]
    assert [parse_error(answer) for answer in answers] == [(404, "NOT_FOUND", [])] * 2


def test_the_server_answers_a_deletion_without_a_body(service: Service) -> None:
    with service.open_client() as client:
        address = client.post(BOOKS, json=build_book()).headers["Location"]
        answer = client.delete(address)
        second_answer = client.delete(address)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers.keys().isdisjoint({"content-type", "content-length", "transfer-encoding"})
    assert parse_error(second_answer) == (404, "NOT_FOUND", [])

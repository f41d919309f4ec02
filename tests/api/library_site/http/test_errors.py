"""Version 2 answers each error in the structure that the specification gives in Section 7."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from library_site.monitoring.log_formatters import JSONFormatter
from tests.support.books import build_book
from tests.support.failures import break_database, build_error
from tests.support.logs import Log, capture_log
from tests.support.responses import REQUEST_ID

BOOKS = "/api/v2/books"
INTERNAL_DETAIL = "could not reach 10.0.0.7, tried keeper:open-sesame"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[Log]:
    yield from capture_log(JSONFormatter(), caplog)


def request_json(client: httpx.Client, method: str, address: str, **options: Any) -> tuple[int, dict[str, Any]]:
    """Sends a request with a request id; checks the headers of the response and returns its status and body."""
    headers = {"X-Request-ID": REQUEST_ID, **options.pop("headers", {})}
    response = client.request(method, address, headers=headers, **options)
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers.get_list("X-Request-ID") == [REQUEST_ID]
    return response.status_code, response.json()


def test_options_and_a_refused_patch_tell_the_media_types_of_a_patch(api: httpx.Client, book: dict[str, Any]) -> None:
    """RFC 5789, 2.2 and 3.1."""
    address, text = f"{BOOKS}/{book['id']}", {"Content-Type": "text/plain"}
    coded = {"Content-Encoding": "gzip"}
    told = [api.options(address), *(api.patch(address, content=b"{}", headers=headers) for headers in (text, coded))]
    others = [api.options(BOOKS), api.options("/api/books/1"), api.patch(address, content=b"["), api.get(address)]
    others += [api.put(address, content=b"{}", headers=text), api.post(BOOKS, content=b"{}", headers=text)]
    assert [response.status_code for response in [*told, *others]] == [204, 415, 415, 204, 204, 400, 200, 415, 415]
    types = "application/json, application/merge-patch+json"
    assert [response.headers.get("Accept-Patch") for response in told] == [types] * 3
    assert not any("Accept-Patch" in response.headers for response in others)


@pytest.mark.parametrize("address", [BOOKS, "/api/books?version=2", "/api/books", "/api/v1/books"])
def test_bad_requests_are_refused_in_the_shape_of_the_version(api: httpx.Client, address: str) -> None:
    """A body that is cut off, and an unknown host."""
    content = b'{"title": "Emma"}'
    headers = {"Content-Length": str(len(content) + 1)}
    responses = {
        "The body was cut off.": request_json(api, "POST", address, content=content, headers=headers),
        "Bad Request": request_json(api, "GET", address, headers={"Host": "evil.example"}),
    }
    for message, response in responses.items():
        expected = build_error("MALFORMED_REQUEST", message) if "2" in address else {"detail": message}
        assert response == (400, expected)


def test_an_isbn_in_use_is_a_conflict_that_links_the_other_book(api: httpx.Client, book: dict[str, Any]) -> None:
    other = api.post(BOOKS, json=build_book()).json()
    for method, end in (("POST", ""), ("PUT", f"/{other['id']}"), ("PATCH", f"/{other['id']}")):
        headers = {"X-Request-ID": REQUEST_ID}
        response = api.request(method, BOOKS + end, json=build_book(isbn=book["isbn"]), headers=headers)
        url = f"http://127.0.0.1:8000{BOOKS}/{book['id']}"
        expected = build_error("CONFLICT", "Another book has this isbn", ("isbn", f"The book at {url} has it"))
        assert (response.status_code, response.json()) == (409, expected)
        assert response.headers["Link"] == f'<{url}>; rel="related"'


@pytest.mark.parametrize("path", ["", "/{id}/restore"])
def test_a_precondition_names_no_book_where_there_is_none(api: httpx.Client, book: dict[str, Any], path: str) -> None:
    api.delete(f"{BOOKS}/{book['id']}")
    for accept in ("application/json", "text/csv"):
        method = "POST" if path else "GET"
        headers = {"If-Match": '"other"', "Accept": accept}
        status, body = request_json(api, method, BOOKS + path.format(**book), headers=headers)
        assert (status, body["error"]["message"]) == (412, "The state is another than the request asks for")


def test_a_compressed_body_is_refused(api: httpx.Client) -> None:
    """Even one that is readable: what its header says does not fit it."""
    body = json.dumps(build_book()).encode()
    for address, coding, content in (
        ("/api/books", "gzip", gzip.compress(body)),
        (BOOKS, "br, identity", gzip.compress(body)),
        (BOOKS, "GZIP", body),
    ):
        headers = {"Content-Encoding": coding, "Content-Type": "application/json"}
        response = api.post(address, content=content, headers=headers)
        assert (response.status_code, response.headers["Accept-Encoding"]) == (415, "identity")
        assert "without Content-Encoding" in response.text
    assert api.post(BOOKS, json=build_book(), headers={"Content-Encoding": "Identity"}).status_code == 201


FAILING: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "", {}),
    ("PUT", "/1", {"json": build_book()}),
    ("POST", "/bulk", {"json": {"operations": [{"op": "delete", "id": 1}]}}),
]


def test_a_failure_shows_no_internal_details(api: httpx.Client, log: Log) -> None:
    for method, end, content in FAILING:
        with break_database(RuntimeError(INTERNAL_DETAIL)):
            response = request_json(api, method, BOOKS + end, **content)
        assert response == (500, build_error("INTERNAL_ERROR", "Internal Server Error"))
        failure, access = log.parse_lines()[-2:]
        assert INTERNAL_DETAIL in failure["exception"]
        assert (failure["request_id"], access["request_id"], access["status"]) == (REQUEST_ID, REQUEST_ID, 500)

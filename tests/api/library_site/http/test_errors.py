"""Version 2 answers each error in the structure that the specification gives in Section 7."""

import gzip
import json
from collections.abc import Iterator
from typing import Any, NoReturn

import httpx
import pytest

from library_site.monitoring.log_formatters import JSONFormatter
from tests.support.books import build_book
from tests.support.failures import break_database, build_error
from tests.support.logs import Log, capture_log
from tests.support.responses import REQUEST_ID, parse_allow

BOOKS = "/api/v2/books"
INTERNAL_DETAIL = "could not reach 10.0.0.7, tried keeper:open-sesame"
NOT_AN_INTEGER = "Input should be a valid integer."
OVERSIZED_BODY = b" " * (1024 * 1024 + 1)


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


@pytest.mark.parametrize(("method", "end"), [("POST", ""), ("PUT", "/{id}"), ("PATCH", "/{id}"), ("POST", "/bulk")])
def test_a_body_that_is_no_json_is_malformed(api: httpx.Client, book: dict[str, Any], method: str, end: str) -> None:
    messages = dict.fromkeys([b"{", b"\xff", b"NaN"], "The body is not valid JSON.") | {b"": "The body is empty."}
    for content, message in messages.items():
        response = request_json(api, method, BOOKS + end.format(**book), content=content)
        assert response == (400, build_error("MALFORMED_REQUEST", message, ("body", message))), content


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


def test_a_version_that_is_not_served_is_unsupported(api: httpx.Client) -> None:
    status, body = request_json(api, "GET", "/api/v9/books")
    message = body["error"]["message"]
    assert (status, body) == (400, build_error("UNSUPPORTED_VERSION", message))
    assert [number for number in "0123456789" if number in message] == ["1", "2"]


def test_a_parameter_that_is_not_known_is_named(api: httpx.Client, book: dict[str, Any]) -> None:
    message, nearest = "The query has a parameter that is not known", "the nearest name is author."
    for method, end in (
        ("GET", ""),
        ("GET", "/{id}"),
        ("POST", ""),
        ("PUT", "/{id}"),
        ("PATCH", "/{id}"),
        ("DELETE", "/{id}"),
        ("POST", "/bulk"),
    ):
        body = {} if method in ("GET", "DELETE") else {"json": build_book()}
        status, error = request_json(api, method, f"{BOOKS}{end.format(**book)}?autor=austen", **body)
        (problem,) = error["error"]["details"]
        assert (status, error) == (400, build_error("UNKNOWN_PARAMETER", message, ("autor", problem["message"])))
        assert (nearest in problem["message"]) is ((method, end) == ("GET", ""))


def test_an_unknown_book_or_address_is_not_found(api: httpx.Client) -> None:
    for method, content in (
        ("GET", {}),
        ("PUT", {"json": build_book()}),
        ("PUT", {"content": b"{"}),
        ("PATCH", {"json": {}}),
        ("DELETE", {}),
    ):
        assert request_json(api, method, f"{BOOKS}/0", **content) == (404, build_error("NOT_FOUND", "Book not found"))
    for address in ("/api/v2", "/api/v2/", "/api/v2/nothing", f"{BOOKS}/1/2", "/api/v2/books.json"):
        for method in ("GET", "POST", "PROPFIND"):
            assert request_json(api, method, address) == (404, build_error("NOT_FOUND", "Not Found")), address


def test_the_response_to_a_wrong_method_lists_the_right_ones(api: httpx.Client) -> None:
    of_list, of_book = {"GET", "POST", "HEAD", "OPTIONS"}, {"GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
    for method, end, methods in (
        ("DELETE", "", of_list),
        ("PATCH", "", of_list),
        ("POST", "/1", of_book),
        ("POST", "/x", of_book),
        ("GET", "/bulk", {"POST", "OPTIONS"}),
    ):
        response = api.request(method, BOOKS + end, content=b"{", headers={"X-Request-ID": REQUEST_ID})
        expected = build_error("METHOD_NOT_ALLOWED", f'Method "{method}" not allowed.')
        assert (response.status_code, response.json(), parse_allow(response)) == (405, expected, methods)


@pytest.mark.parametrize(("method", "end"), [("POST", ""), ("PUT", "/{id}"), ("PATCH", "/{id}")])
def test_an_isbn_in_use_is_a_conflict_that_links_the_other_book(
    api: httpx.Client, book: dict[str, Any], method: str, end: str
) -> None:
    address = BOOKS + end.format(**api.post(BOOKS, json=build_book()).json())
    headers = {"X-Request-ID": REQUEST_ID}
    response = api.request(method, address, json=build_book(isbn=book["isbn"]), headers=headers)
    url = f"http://127.0.0.1:8000{BOOKS}/{book['id']}"
    expected = build_error("CONFLICT", "Another book has this isbn", ("isbn", f"The book at {url} has it"))
    assert (response.status_code, response.json()) == (409, expected)
    assert response.headers["Link"] == f'<{url}>; rel="related"'


def test_a_precondition_that_does_not_hold_is_answered_412(api: httpx.Client, book: dict[str, Any]) -> None:
    for method, end, header, content in (
        ("GET", "", "If-Match", {}),
        ("GET", "/{id}", "If-Match", {}),
        ("PUT", "/{id}", "If-Match", {"json": build_book()}),
        ("PATCH", "/{id}", "If-Match", {"json": {}}),
        ("DELETE", "/{id}", "If-Match", {}),
        ("DELETE", "/{id}", "If-None-Match", {}),
    ):
        headers = {header: '"other"' if header == "If-Match" else "*"}
        status, body = request_json(api, method, BOOKS + end.format(**book), headers=headers, **content)
        assert (status, body) == (412, build_error("PRECONDITION_FAILED", body["error"]["message"])), (method, end)
        assert ("book" in body["error"]["message"]) == bool(end)


@pytest.mark.parametrize("path", ["", "/{id}/restore"])
def test_a_precondition_names_no_book_where_there_is_none(api: httpx.Client, book: dict[str, Any], path: str) -> None:
    api.delete(f"{BOOKS}/{book['id']}")
    for accept in ("application/json", "text/csv"):
        method = "POST" if path else "GET"
        headers = {"If-Match": '"other"', "Accept": accept}
        status, body = request_json(api, method, BOOKS + path.format(**book), headers=headers)
        assert (status, body["error"]["message"]) == (412, "The state is another than the request asks for")


def test_a_body_that_is_too_large_is_refused(api: httpx.Client, book: dict[str, Any]) -> None:
    for method, end, size in (
        ("POST", "", 2**20),
        ("PUT", "/{id}", 2**20),
        ("PATCH", "/{id}", 2**20),
        ("POST", "/bulk", 2**24),
    ):
        response = request_json(api, method, BOOKS + end.format(**book), content=b" " * (size + 1))
        assert response == (413, build_error("PAYLOAD_TOO_LARGE", f"The body is over {size} bytes."))
    # Only version 2 takes larger ones.
    response = request_json(api, "PUT", "/api/books/bulk", content=OVERSIZED_BODY)
    assert response == (413, {"detail": "The body is over 1048576 bytes."})


def test_a_body_of_another_type_is_refused(api: httpx.Client, book: dict[str, Any]) -> None:
    for method, end, media_type in (
        ("POST", "", "text/plain"),
        ("POST", "", "application/merge-patch+json"),
        ("PUT", "/{id}", "multipart/form-data"),
        ("PATCH", "/{id}", "application/json-patch+json"),
        ("PATCH", "/0", "text/plain"),
        ("POST", "/bulk", "application/x-www-form-urlencoded"),
    ):
        headers = {"Content-Type": media_type}
        response = request_json(api, method, BOOKS + end.format(**book), content=b"{}", headers=headers)
        message = f'Unsupported media type "{media_type}" in request.'
        assert response == (415, build_error("UNSUPPORTED_MEDIA_TYPE", message)), (method, end)


@pytest.mark.parametrize("coding", ["gzip", "br, identity", "GZIP"])
@pytest.mark.parametrize("address", ["/api/books", "/api/v2/books"])
def test_a_compressed_body_is_refused(api: httpx.Client, address: str, coding: str) -> None:
    """Even one that is readable: what its header says does not fit it."""
    headers = {"Content-Encoding": coding}
    for body in (gzip.compress(json.dumps(build_book()).encode()), json.dumps(build_book()).encode()):
        response = api.post(address, content=body, headers={**headers, "Content-Type": "application/json"})
        assert (response.status_code, response.headers["Accept-Encoding"]) == (415, "identity")
        assert "without Content-Encoding" in response.text
    assert api.post(address, json=build_book(), headers={"Content-Encoding": "Identity"}).status_code == 201


def test_all_problems_of_a_body_are_listed(api: httpx.Client) -> None:
    status, body = request_json(
        api, "POST", BOOKS, json={"title": 1, "year": "1984", "isbn": "", "genre": None, "shelf": 3}
    )
    fields = ["author", "genre", "isbn", "shelf", "title", "year"]
    assert sorted(problem["field"] for problem in body["error"]["details"]) == fields
    details = [(problem["field"], problem["message"]) for problem in body["error"]["details"]]
    assert (status, body) == (422, build_error("VALIDATION_ERROR", "The request is not valid", *details))


def test_the_problems_of_an_address_are_listed(api: httpx.Client) -> None:
    for address, field, message in (
        ("/x", "book_id", NOT_AN_INTEGER),
        ("?limit=many", "limit", NOT_AN_INTEGER),
        ("?limit=501", "limit", "Input should be less than or equal to 500."),
        ("?year_min=MCM", "year_min", NOT_AN_INTEGER),
    ):
        expected = build_error("VALIDATION_ERROR", "The request is not valid", (field, message))
        assert request_json(api, "GET", BOOKS + address) == (422, expected)
    query = "limit=0&sort=shelf&fields=isbm&year_max=x&available=maybe&count=2"
    status, body = request_json(api, "GET", f"{BOOKS}?{query}")
    assert (status, body["error"]["code"]) == (422, "VALIDATION_ERROR")
    fields = {problem["field"] for problem in body["error"]["details"]}
    assert fields == {"limit", "sort", "fields", "year_max", "available", "count"}


@pytest.mark.parametrize(
    ("method", "end", "content"),
    [
        ("GET", "", {}),
        ("GET", "/1", {}),
        ("POST", "", {"json": build_book()}),
        ("PUT", "/1", {"json": build_book()}),
        ("PATCH", "/1", {"json": {}}),
        ("DELETE", "/1", {}),
        ("POST", "/bulk", {"json": {"operations": [{"op": "delete", "id": 1}]}}),
    ],
)
def test_a_failure_shows_no_internal_details(
    api: httpx.Client, log: Log, method: str, end: str, content: dict[str, Any]
) -> None:
    with break_database(RuntimeError(INTERNAL_DETAIL)):
        response = request_json(api, method, BOOKS + end, **content)
    assert response == (500, build_error("INTERNAL_ERROR", "Internal Server Error"))
    failure, access = log.parse_lines()
    assert INTERNAL_DETAIL in failure["exception"]
    assert (failure["request_id"], access["request_id"], access["status"]) == (REQUEST_ID, REQUEST_ID, 500)


@pytest.mark.parametrize("key", ["", "once"])
def test_a_failure_of_the_clock_shows_no_internal_details(
    api: httpx.Client, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    def fail() -> NoReturn:
        raise OSError(INTERNAL_DETAIL)

    headers = {"Idempotency-Key": key} if key else {}
    monkeypatch.setattr("django.utils.timezone.now", fail)
    response = request_json(api, "POST", BOOKS, json=build_book(), headers=headers)
    assert response == (500, build_error("INTERNAL_ERROR", "Internal Server Error"))


def test_an_address_of_no_version_is_answered_as_version_1(api: httpx.Client) -> None:
    assert request_json(api, "GET", "/nowhere") == (404, {"detail": "Not Found"})
    assert request_json(api, "POST", "/openapi/v2.json") == (405, {"detail": 'Method "POST" not allowed.'})

"""Version 2 answers each error in the structure that the specification gives in Section 7."""

import gzip
import json
from collections.abc import Iterator
from typing import Any, NoReturn

import httpx
import pytest
from django.db import OperationalError

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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "The body is not valid JSON."),
        (b"\xff", "The body is not valid JSON."),
        (b"NaN", "The body is not valid JSON."),
        (b"", "The body is empty."),
    ],
)
@pytest.mark.parametrize(("method", "end"), [("POST", ""), ("PUT", "/{id}"), ("PATCH", "/{id}"), ("POST", "/bulk")])
def test_a_body_that_is_no_json_is_malformed(
    api: httpx.Client, book: dict[str, Any], method: str, end: str, content: bytes, message: str
) -> None:
    response = request_json(api, method, BOOKS + end.format(**book), content=content)
    assert response == (400, build_error("MALFORMED_REQUEST", message, ("body", message)))


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (BOOKS, build_error("MALFORMED_REQUEST", "The body was cut off.")),
        ("/api/books?version=2", build_error("MALFORMED_REQUEST", "The body was cut off.")),
        ("/api/books", {"detail": "The body was cut off."}),
        ("/api/v1/books", {"detail": "The body was cut off."}),
    ],
)
def test_a_truncated_body_is_malformed(api: httpx.Client, address: str, expected: dict[str, Any]) -> None:
    content = b'{"title": "Emma"}'
    headers = {"Content-Length": str(len(content) + 1)}
    assert request_json(api, "POST", address, content=content, headers=headers) == (400, expected)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (BOOKS, build_error("MALFORMED_REQUEST", "Bad Request")),
        (f"{BOOKS}/1", build_error("MALFORMED_REQUEST", "Bad Request")),
        ("/api/v2/nothing", build_error("MALFORMED_REQUEST", "Bad Request")),
        ("/api/books?version=2", build_error("MALFORMED_REQUEST", "Bad Request")),
        ("/api/books", {"detail": "Bad Request"}),
        ("/api/v1/books", {"detail": "Bad Request"}),
    ],
)
def test_an_unknown_host_is_refused_in_the_shape_of_the_version(
    api: httpx.Client, address: str, expected: dict[str, Any]
) -> None:
    assert request_json(api, "GET", address, headers={"Host": "evil.example"}) == (400, expected)


def test_a_version_that_is_not_served_is_unsupported(api: httpx.Client) -> None:
    status, body = request_json(api, "GET", "/api/v9/books")
    message = body["error"]["message"]
    assert (status, body) == (400, build_error("UNSUPPORTED_VERSION", message))
    assert [number for number in "0123456789" if number in message] == ["1", "2"]


@pytest.mark.parametrize(
    ("method", "end", "nearest"),
    [
        ("GET", "?autor=austen", "It is not known here; the nearest name is author."),
        ("GET", "/{id}?autor=austen", None),
        ("POST", "?autor=austen", None),
        ("PUT", "/{id}?autor=austen", None),
        ("PATCH", "/{id}?autor=austen", None),
        ("DELETE", "/{id}?autor=austen", None),
        ("POST", "/bulk?autor=austen", None),
    ],
)
def test_a_parameter_that_is_not_known_is_named(
    api: httpx.Client, book: dict[str, Any], method: str, end: str, nearest: str | None
) -> None:
    content = {} if method in ("GET", "DELETE") else {"json": build_book()}
    status, body = request_json(api, method, BOOKS + end.format(**book), **content)
    (problem,) = body["error"]["details"]
    expected = build_error(
        "UNKNOWN_PARAMETER", "The query has a parameter that is not known", ("autor", nearest or problem["message"])
    )
    assert (status, body) == (400, expected)


@pytest.mark.parametrize(
    ("method", "content"),
    [("GET", {}), ("PUT", {"json": build_book()}), ("PUT", {"content": b"{"}), ("PATCH", {"json": {}}), ("DELETE", {})],
)
def test_a_book_that_is_not_there_is_not_found(api: httpx.Client, method: str, content: dict[str, Any]) -> None:
    assert request_json(api, method, f"{BOOKS}/0", **content) == (404, build_error("NOT_FOUND", "Book not found"))


@pytest.mark.parametrize("address", ["/api/v2", "/api/v2/", "/api/v2/nothing", f"{BOOKS}/1/2", "/api/v2/books.json"])
@pytest.mark.parametrize("method", ["GET", "POST", "PROPFIND"])
def test_an_unknown_address_is_not_found(api: httpx.Client, method: str, address: str) -> None:
    assert request_json(api, method, address) == (404, build_error("NOT_FOUND", "Not Found"))


@pytest.mark.parametrize(
    ("method", "end", "methods"),
    [
        ("DELETE", "", {"GET", "POST", "HEAD", "OPTIONS"}),
        ("PATCH", "", {"GET", "POST", "HEAD", "OPTIONS"}),
        ("POST", "/1", {"GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}),
        ("POST", "/x", {"GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}),
        ("GET", "/bulk", {"POST", "OPTIONS"}),
        ("DELETE", "/bulk", {"POST", "OPTIONS"}),
    ],
)
def test_the_response_to_a_wrong_method_lists_the_right_ones(
    api: httpx.Client, method: str, end: str, methods: set[str]
) -> None:
    response = api.request(method, BOOKS + end, content=b"{", headers={"X-Request-ID": REQUEST_ID})
    assert (response.status_code, response.json()) == (
        405,
        build_error("METHOD_NOT_ALLOWED", f'Method "{method}" not allowed.'),
    )
    assert parse_allow(response) == methods


@pytest.mark.parametrize(("method", "end"), [("POST", ""), ("PUT", "/{id}"), ("PATCH", "/{id}")])
def test_an_isbn_in_use_is_a_conflict_that_links_the_other_book(
    api: httpx.Client, book: dict[str, Any], method: str, end: str
) -> None:
    another = api.post(BOOKS, json=build_book()).json()
    response = api.request(
        method, BOOKS + end.format(**another), json=build_book(isbn=book["isbn"]), headers={"X-Request-ID": REQUEST_ID}
    )
    url = f"http://127.0.0.1:8000{BOOKS}/{book['id']}"
    assert (response.status_code, response.json()) == (
        409,
        build_error("CONFLICT", "Another book has this isbn", ("isbn", f"The book at {url} has it")),
    )
    assert response.headers["Link"] == f'<{url}>; rel="related"'


@pytest.mark.parametrize(
    ("method", "end", "header", "content"),
    [
        ("GET", "", "If-Match", {}),
        ("GET", "/{id}", "If-Match", {}),
        ("PUT", "/{id}", "If-Match", {"json": build_book()}),
        ("PATCH", "/{id}", "If-Match", {"json": {}}),
        ("DELETE", "/{id}", "If-Match", {}),
        ("DELETE", "/{id}", "If-None-Match", {}),
    ],
)
def test_a_precondition_that_does_not_hold_is_answered_412(
    api: httpx.Client, book: dict[str, Any], method: str, end: str, header: str, content: dict[str, Any]
) -> None:
    tag = '"other"' if header == "If-Match" else "*"
    status, body = request_json(api, method, BOOKS + end.format(**book), headers={header: tag}, **content)
    assert (status, body) == (412, build_error("PRECONDITION_FAILED", body["error"]["message"]))
    assert ("book" in body["error"]["message"]) == bool(end)


@pytest.mark.parametrize("path", ["", "/{id}/restore"])
def test_a_precondition_names_no_book_where_there_is_none(api: httpx.Client, book: dict[str, Any], path: str) -> None:
    api.delete(f"{BOOKS}/{book['id']}")
    for accept in ("application/json", "text/csv"):
        method = "POST" if path else "GET"
        headers = {"If-Match": '"other"', "Accept": accept}
        status, body = request_json(api, method, BOOKS + path.format(**book), headers=headers)
        assert (status, body["error"]["message"]) == (412, "The state is another than the request asks for")


@pytest.mark.parametrize(
    ("method", "end", "size"),
    [("POST", "", 2**20), ("PUT", "/{id}", 2**20), ("PATCH", "/{id}", 2**20), ("POST", "/bulk", 2**24)],
)
def test_a_body_that_is_too_large_is_refused(
    api: httpx.Client, book: dict[str, Any], method: str, end: str, size: int
) -> None:
    response = request_json(api, method, BOOKS + end.format(**book), content=b" " * (size + 1))
    assert response == (413, build_error("PAYLOAD_TOO_LARGE", f"The body is over {size} bytes."))


@pytest.mark.parametrize("prefix", ["/api", "/api/v1"])
def test_only_version_2_takes_larger_bodies(api: httpx.Client, prefix: str) -> None:
    response = request_json(api, "PUT", f"{prefix}/books/bulk", content=OVERSIZED_BODY)
    assert response == (413, {"detail": "The body is over 1048576 bytes."})


@pytest.mark.parametrize(
    ("method", "end", "media_type"),
    [
        ("POST", "", "text/plain"),
        ("POST", "", "application/merge-patch+json"),
        ("PUT", "/{id}", "multipart/form-data"),
        ("PATCH", "/{id}", "application/json-patch+json"),
        ("PATCH", "/0", "text/plain"),
        ("POST", "/bulk", "application/x-www-form-urlencoded"),
    ],
)
def test_a_body_of_another_type_is_refused(
    api: httpx.Client, book: dict[str, Any], method: str, end: str, media_type: str
) -> None:
    response = request_json(
        api, method, BOOKS + end.format(**book), content=b"{}", headers={"Content-Type": media_type}
    )
    assert response == (
        415,
        build_error("UNSUPPORTED_MEDIA_TYPE", f'Unsupported media type "{media_type}" in request.'),
    )


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


@pytest.mark.parametrize(
    ("address", "details"),
    [
        ("/x", [("book_id", NOT_AN_INTEGER)]),
        ("?limit=many", [("limit", NOT_AN_INTEGER)]),
        ("?limit=501", [("limit", "Input should be less than or equal to 500.")]),
        ("?year_min=MCM", [("year_min", NOT_AN_INTEGER)]),
    ],
)
def test_the_problems_of_an_address_are_listed(api: httpx.Client, address: str, details: list[tuple[str, str]]) -> None:
    expected = build_error("VALIDATION_ERROR", "The request is not valid", *details)
    assert request_json(api, "GET", BOOKS + address) == (422, expected)


def test_all_problems_of_a_query_are_listed(api: httpx.Client) -> None:
    status, body = request_json(
        api, "GET", f"{BOOKS}?limit=0&sort=shelf&fields=isbm&year_max=x&available=maybe&count=2"
    )
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


def test_a_database_out_of_reach_is_unavailable(api: httpx.Client) -> None:
    with break_database(OperationalError(INTERNAL_DETAIL)):
        response = request_json(api, "GET", BOOKS)
    assert response == (503, build_error("UNAVAILABLE", "The library is out of reach, try again later"))


@pytest.mark.parametrize("value", ["", "short", "with space", "a" * 65, '"quoted-id"'])
def test_an_id_of_another_form_is_replaced_in_the_error_too(api: httpx.Client, value: str) -> None:
    response = api.get(f"{BOOKS}/0", headers={"X-Request-ID": value})
    request_id = response.headers["X-Request-ID"]
    assert request_id != value
    assert response.json() == build_error("NOT_FOUND", "Book not found", request_id=request_id)


def test_an_address_of_no_version_is_answered_as_version_1(api: httpx.Client) -> None:
    assert request_json(api, "GET", "/nowhere") == (404, {"detail": "Not Found"})
    assert request_json(api, "POST", "/openapi/v2.json") == (405, {"detail": 'Method "POST" not allowed.'})

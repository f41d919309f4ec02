"""A client chooses a version by path, header or query (specification, Section 9)."""

import re
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytest_django import Settings

from tests.support.books import build_book

JSON = "application/json"
LATEST = "application/vnd.library+json"
TYPES = {1: "application/vnd.library.v1+json", 2: "application/vnd.library.v2+json"}
V1_BOOK = {"id", "title", "author", "year", "isbn", "genre", "available", "created_at"}
V2_BOOK = V1_BOOK | {"isbn13", "updated_at", "version"}
OVERSIZED_BODY = b" " * (1024 * 1024 + 1)
# The three selectors of version 1, each as the prefix of an address, its query, and the header Accept.
SELECTORS = {"path": ("/api/v1", "", "*/*"), "query": ("/api", "version=1", "*/*"), "header": ("/api", "", TYPES[1])}


def detect_version(response: httpx.Response) -> int:
    """Returns the version whose structure a response has: a list, a book or an error."""
    body = response.json()
    if isinstance(body, list):
        assert all(book.keys() == V1_BOOK for book in body)
        return 1
    if "results" in body:
        assert all(book.keys() == V2_BOOK for book in body["results"])
        return 2
    return {frozenset(V1_BOOK): 1, frozenset({"detail"}): 1, frozenset(V2_BOOK): 2, frozenset({"error"}): 2}[
        frozenset(body)
    ]


def is_refused(response: httpx.Response) -> bool:
    """Tells whether the response refuses the version and names 1 and 2 as those that are served."""
    if response.status_code != 400:
        return False
    error = response.json()["error"]
    assert error.keys() == {"code", "message", "requestId"}
    assert error["requestId"] == response.headers["X-Request-ID"]
    assert re.findall("[0-9]+", error["message"]) == ["1", "2"]
    return bool(error["code"] == "UNSUPPORTED_VERSION")


def varies_by_accept(response: httpx.Response) -> bool:
    """Tells whether the header Vary names Accept."""
    return "accept" in [name.strip().lower() for name in response.headers.get("Vary", "").split(",")]


def drop_varying_headers(response: httpx.Response) -> dict[str, str]:
    """Returns the headers that do not depend on how a version is chosen."""
    return {name: value for name, value in response.headers.items() if name not in ("x-request-id", "content-type")}


@pytest.fixture
def broken_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every call that reads the time fail."""

    def fail() -> None:
        raise OSError("The clock of /dev/rtc0 stands still.")

    monkeypatch.setattr("django.utils.timezone.now", fail)


@pytest.mark.parametrize("address", ["/api/v2/books", "/api/books?version=2", "/api/v2/books?version=2"])
@pytest.mark.parametrize("accept", ["*/*", LATEST, TYPES[2]])
def test_selectors_of_version_2_agree(api: httpx.Client, book: dict[str, Any], address: str, accept: str) -> None:
    response = api.get(address, headers={"Accept": accept})
    assert [book["id"] for book in response.json()["results"]] == [book["id"]]
    assert detect_version(response) == 2


@pytest.mark.parametrize("address", ["/api/v1/books", "/api/books?version=1", "/api/v1/books?version=1", "/api/books"])
@pytest.mark.parametrize("accept", ["*/*", TYPES[1]])
def test_selectors_of_version_1_agree(api: httpx.Client, book: dict[str, Any], address: str, accept: str) -> None:
    response = api.get(address, headers={"Accept": accept})
    assert response.json() == [book]


def test_an_address_without_a_version_is_version_1(api: httpx.Client, book: dict[str, Any]) -> None:
    response = api.get("/api/books")
    assert response.json() == [book]
    assert response.headers["Content-Type"] == JSON


def test_the_vendor_type_without_a_number_is_the_latest_version(api: httpx.Client, book: dict[str, Any]) -> None:
    response = api.get(f"/api/books/{book['id']}", headers={"Accept": LATEST})
    assert detect_version(response) == 2
    assert response.headers["Content-Type"] == LATEST


@pytest.mark.parametrize(
    ("address", "accept"),
    [
        ("/api/v1/books?version=2", "*/*"),
        ("/api/v2/books?version=1", "*/*"),
        ("/api/v1/books", TYPES[2]),
        ("/api/v2/books", TYPES[1]),
        ("/api/v1/books", LATEST),
        ("/api/books?version=1", LATEST),
        ("/api/books?version=1", TYPES[2]),
        ("/api/books?version=2", TYPES[1]),
        ("/api/v2/books?version=1", TYPES[2]),
        ("/api/books?version=1&version=2", "*/*"),
        ("/api/v2/books?version=2&version=9", TYPES[2]),
        ("/api/v9/books?version=1", "*/*"),
        ("/api/v9/books", TYPES[1]),
    ],
)
def test_selectors_that_disagree_are_refused(api: httpx.Client, address: str, accept: str) -> None:
    assert is_refused(api.get(address, headers={"Accept": accept}))


@pytest.mark.parametrize("number", ["v", "v0", "v3", "v-1", "vx", "v1.0", "v2.1", "v" + "9" * 5000])
def test_a_vendor_type_of_no_version_is_refused(api: httpx.Client, number: str) -> None:
    assert is_refused(api.get("/api/books", headers={"Accept": f"application/vnd.library.{number}+json"}))


def test_a_version_may_be_named_twice(api: httpx.Client) -> None:
    assert detect_version(api.get("/api/books?version=2&limit=1&version=2")) == 2


@pytest.mark.parametrize("query", ["%76ersion=2", "version=%32", "&&version=2&"])
def test_a_version_is_read_from_a_query_however_it_is_written(api: httpx.Client, query: str) -> None:
    assert detect_version(api.get(f"/api/books?{query}")) == 2


def test_the_version_is_no_parameter_of_the_list(api: httpx.Client) -> None:
    response = api.get("/api/books?version=2&verison=2")
    assert response.json()["error"]["code"] == "UNKNOWN_PARAMETER"
    assert [problem["field"] for problem in response.json()["error"]["details"]] == ["verison"]


@pytest.mark.parametrize("text", ["Émile", "a&b=c", "100%", "a+b", "日本", "a;b", "#"])
def test_the_version_leaves_the_rest_of_the_query_unchanged(api: httpx.Client, text: str) -> None:
    book = api.post("/api/books", json=build_book(author=f"<{text}>")).json()
    api.post("/api/books", json=build_book())
    response = api.get("/api/books", params={"author": text, "version": "2", "limit": "5"})
    assert [book["id"] for book in response.json()["results"]] == [book["id"]]


@pytest.mark.parametrize(
    ("address", "accept"),
    [
        ("/api/books?version=2&limit=1", "*/*"),
        ("/api/v2/books?limit=1&version=2", "*/*"),
        ("/api/books?limit=1", LATEST),
    ],
)
def test_the_pages_of_a_list_stay_in_its_version(api: httpx.Client, address: str, accept: str) -> None:
    books = [api.post("/api/books", json=build_book()).json() for _ in range(2)]
    first = api.get(address, headers={"Accept": accept}).json()
    second = api.get(httpx.URL(first["next"]).raw_path.decode())
    assert "version" not in first["next"].split("?")[1]
    assert [book["id"] for book in second.json()["results"]] == [books[1]["id"]]
    assert detect_version(second) == 2


@pytest.mark.parametrize(
    ("accept", "version", "media_type"),
    [
        (TYPES[2].upper(), 2, TYPES[2]),
        ("Application/Vnd.Library.V1+Json", 1, TYPES[1]),
        (f"text/html, {TYPES[2]}", 2, TYPES[2]),
        (f"text/html,{TYPES[2]};q=0.1,*/*", 2, TYPES[2]),
        (f"{TYPES[1]};q=0.5, {TYPES[2]}", 2, TYPES[2]),
        (f"{TYPES[2]};q=0.5, {TYPES[1]};q=0.9", 1, TYPES[1]),
        (f"{TYPES[2]};q=0.001", 2, TYPES[2]),
        (f"{TYPES[2]};Q=0.5 , {TYPES[1]} ; q=0.9", 1, TYPES[1]),
        (f"{TYPES[2]};q=0", 1, JSON),
        (f"{TYPES[2]}; q=0.000", 1, JSON),
        (f"{TYPES[2]};q=0, {TYPES[1]}", 1, TYPES[1]),
        (f"{TYPES[2]};q=0 , text/html", 1, JSON),
        (f"{TYPES[2]};charset=utf-8;q=0", 1, JSON),
        (f"{TYPES[2]};charset=utf-8;q=0.1, {TYPES[1]};q=0.9", 1, TYPES[1]),
        (f"application/vnd.library.v9+json, {TYPES[1]};q=0.5", 1, TYPES[1]),
        (f"{TYPES[2]};charset=utf-8", 2, TYPES[2]),
        (f",, {TYPES[2]} ,", 2, TYPES[2]),
        (f"{LATEST};q=0.5, {TYPES[1]}", 1, TYPES[1]),
    ],
)
def test_the_preferred_vendor_type_is_served(api: httpx.Client, accept: str, version: int, media_type: str) -> None:
    response = api.get("/api/books", headers={"Accept": accept})
    assert (response.status_code, detect_version(response), response.headers["Content-Type"]) == (
        200,
        version,
        media_type,
    )


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "application/*",
        JSON,
        "application/vnd.librarian.v2+json",
        "application/vnd.other.v2+json",
        "xapplication/vnd.library.v2+json",
        'text/html;x="application/vnd.library.v2+json"',
        ";q=1,;,",
        "q=0",
        "vnd.library",
        "application/vnd.library",
        "a" * 20_000,
        "application/vnd.library.v2" * 1_000,
    ],
)
def test_other_media_types_choose_no_version(api: httpx.Client, accept: str) -> None:
    response = api.get("/api/books", headers={"Accept": accept})
    assert (response.status_code, detect_version(response), response.headers["Content-Type"]) == (200, 1, JSON)


@pytest.mark.parametrize("version", [1, 2])
def test_every_json_answer_has_the_vendor_type(api: httpx.Client, book: dict[str, Any], version: int) -> None:
    address = f"/api/books/{book['id']}"
    api.headers["Accept"] = TYPES[version]
    responses = [
        api.get("/api/books"),
        api.get(address),
        api.head(address),
        api.post("/api/books", json=build_book()),
        api.put(address, json=build_book()),
        api.post("/api/books", content=b"{}", headers={"Content-Length": "3"}),
        api.get("/api/books/0"),
        api.get("/api/nothing"),
        api.delete("/api/books"),
        api.post("/api/books", json=api.get(address).json()),
        api.get(address, headers={"If-Match": '"other"'}),
        api.post("/api/books", content=OVERSIZED_BODY),
        api.post("/api/books", content=b"{}", headers={"Content-Type": "text/plain"}),
        api.post("/api/books", json=build_book(year="1984")),
    ]
    statuses = [200, 200, 200, 201, 200, 400, 404, 404, 405, 409, 412, 413, 415, 422]
    assert [response.status_code for response in responses] == statuses
    assert {response.headers["Content-Type"] for response in responses} == {TYPES[version]}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.usefixtures("broken_clock")
def test_a_failure_has_the_vendor_type_and_varies(api: httpx.Client, version: int) -> None:
    response = api.post("/api/books", json=build_book(), headers={"Accept": TYPES[version]})
    assert (response.status_code, detect_version(response), response.headers["Content-Type"]) == (
        500,
        version,
        TYPES[version],
    )
    assert varies_by_accept(response)


@pytest.mark.parametrize("accept", [LATEST, TYPES[2]])
def test_a_response_without_a_body_has_no_vendor_type(api: httpx.Client, book: dict[str, Any], accept: str) -> None:
    address = f"/api/books/{book['id']}"
    api.headers["Accept"] = accept
    responses = [
        api.get(address, headers={"If-None-Match": "*"}),
        api.get("/api/books", headers={"If-None-Match": "*"}),
        api.options(address),
        api.delete(address),
    ]
    assert [response.status_code for response in responses] == [304, 304, 204, 204]
    assert [response.content for response in responses] == [b""] * 4
    assert [response for response in responses if "vnd" in response.headers.get("Content-Type", "")] == []


@pytest.mark.parametrize("prefix", ["/api", "/api/v1", "/api/v2"])
def test_every_response_of_the_api_varies_by_accept(api: httpx.Client, book: dict[str, Any], prefix: str) -> None:
    address = f"{prefix}/books/{book['id']}"
    responses = [
        api.get(f"{prefix}/books"),
        api.get(f"{prefix}/books/"),
        api.head(address),
        api.options(address),
        api.post(f"{prefix}/books", json=build_book()),
        api.get(address, headers={"If-None-Match": "*"}),
        api.get(f"{prefix}/books?version=9"),
        api.get(f"{prefix}/books", headers={"Host": "evil.example"}),
        api.get(f"{prefix}/books/0"),
        api.get(f"{prefix}/nothing"),
        api.get(f"{prefix}/"),
        api.delete(f"{prefix}/books"),
        api.post(f"{prefix}/books", content=b"{}", headers={"Content-Type": "text/plain"}),
        api.get(f"{prefix}/books/x"),
    ]
    statuses = [200, 200, 200, 204, 201, 304, 400, 400, 404, 404, 404, 405, 415, 422]
    assert [response.status_code for response in responses] == statuses
    assert [response for response in responses if not varies_by_accept(response)] == []


@pytest.mark.parametrize("address", ["/", "/docs", "/docs/v2", "/openapi.json", "/openapi/v2.json", "/admin/login/"])
def test_other_responses_are_the_same_for_every_accept(api: httpx.Client, address: str) -> None:
    plain, vendor_answer = api.get(address), api.get(address, headers={"Accept": TYPES[2]})
    assert not varies_by_accept(plain)
    assert (vendor_answer.status_code, vendor_answer.headers["Content-Type"]) == (
        plain.status_code,
        plain.headers["Content-Type"],
    )


@pytest.mark.parametrize("selector", SELECTORS)
def test_version_1_is_the_same_however_it_is_chosen(api: httpx.Client, book: dict[str, Any], selector: str) -> None:
    prefix, query, accept = SELECTORS[selector]
    book_address = f"/books/{book['id']}"
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", "/books", {}),
        ("GET", "/books?limit=1&skip=1", {}),
        ("GET", "/books?limit=0&skip=-1", {}),
        ("GET", "/books?fields=id&cursor=x&limit=5", {}),
        ("GET", "/books/?author=AUSTEN", {}),
        ("HEAD", "/books", {}),
        ("OPTIONS", book_address, {}),
        ("PATCH", book_address, {}),
        ("GET", book_address, {}),
        ("GET", book_address, {"headers": {"If-None-Match": "*"}}),
        ("GET", book_address, {"headers": {"If-Match": '"other"'}}),
        ("GET", "/books/0", {}),
        ("GET", "/books/x", {}),
        ("GET", "/nothing", {}),
        ("PUT", book_address, {"json": {}}),
        ("PUT", book_address, {"json": {"id": 9, "available": False, "shelf": 3}}),
        ("PUT", book_address, {"json": {"year": None, "title": 3}}),
        ("PUT", "/books/0", {"content": b"{"}),
        ("POST", "/books", {"json": book}),
        ("POST", "/books", {"content": b"{"}),
        ("POST", "/books", {"content": b"", "headers": {"Content-Type": "text/plain"}}),
        ("POST", "/books", {"content": OVERSIZED_BODY}),
        ("POST", "/books", {"content": b"{}", "headers": {"Content-Length": "3"}}),
        ("POST", "/books/bulk", {"json": {}}),
        ("DELETE", "/books", {}),
        ("DELETE", "/books/0", {}),
    ]
    for method, address, options in requests:
        plain = api.request(method, f"/api{address}", **options)
        separator = ("&" if "?" in address else "?") if query else ""
        headers = {"Accept": accept, **options.get("headers", {})}
        chosen = api.request(method, f"{prefix}{address}{separator}{query}", **{**options, "headers": headers})
        assert (chosen.status_code, chosen.content) == (plain.status_code, plain.content), (method, address)
        assert drop_varying_headers(chosen) == drop_varying_headers(plain), (method, address)


@pytest.mark.parametrize("selector", SELECTORS)
def test_a_new_book_of_version_1_is_found_at_its_own_address(api: httpx.Client, selector: str) -> None:
    prefix, query, accept = SELECTORS[selector]
    created = api.post(f"{prefix}/books?{query}", json=build_book(), headers={"Accept": accept})
    assert created.headers["Location"] == f"/api/books/{created.json()['id']}"
    assert api.get(created.headers["Location"]).json() == created.json()


@pytest.mark.parametrize(
    ("address", "accept"), [("/api/v2/books", "*/*"), ("/api/books?version=2", "*/*"), ("/api/books", LATEST)]
)
def test_a_new_book_of_version_2_is_found_at_its_own_address(api: httpx.Client, address: str, accept: str) -> None:
    created = api.post(address, json=build_book(), headers={"Accept": accept})
    assert created.headers["Location"] == f"/api/v2/books/{created.json()['id']}"
    assert api.get(created.headers["Location"]).json() == created.json()


def test_the_versions_share_their_books(api: httpx.Client) -> None:
    created = api.post("/api/v2/books", json=build_book()).json()
    v1_book = api.get(f"/api/books/{created['id']}").json()
    assert {name: v1_book[name] for name in V1_BOOK - {"created_at"}} == {
        name: created[name] for name in V1_BOOK - {"created_at"}
    }
    assert created["created_at"] == f"{v1_book['created_at']}Z"
    assert api.delete(f"/api/v1/books/{created['id']}").status_code == 200
    assert api.get(f"/api/v2/books/{created['id']}").status_code == 404


@pytest.mark.parametrize(
    ("method", "address"),
    [
        ("PATCH", "/api/v9/books"),
        ("POST", "/api/v9/books/1"),
        ("DELETE", "/api/books?version=9"),
        ("PUT", "/api/v1/books?version=2"),
    ],
)
def test_a_wrong_method_outranks_a_wrong_version(api: httpx.Client, method: str, address: str) -> None:
    response = api.request(method, address, content=b"{")
    assert (response.status_code, detect_version(response)) == (405, 2)
    assert "Allow" in response.headers


@pytest.mark.parametrize(
    ("method", "address", "options"),
    [
        ("POST", "", {"content": OVERSIZED_BODY}),
        ("POST", "", {"content": b"{}", "headers": {"Content-Type": "text/plain"}}),
        ("POST", "", {"content": b"{"}),
        ("POST", "", {"content": b"{}"}),
        ("POST", "", {"content": b"{}", "headers": {"Idempotency-Key": ""}}),
        ("PUT", "/0", {"content": b"{"}),
        ("PUT", "/x", {"content": b"{}"}),
        ("DELETE", "/0", {}),
        ("GET", "/0", {}),
        ("GET", "/x", {}),
        ("GET", "/1/2", {}),
        ("GET", "", {"params": {"limit": "0"}}),
        ("GET", "", {"params": {"nothing": "1"}}),
        ("GET", "", {"headers": {"If-Match": '"other"'}}),
    ],
)
@pytest.mark.parametrize(
    ("prefix", "query", "accept"),
    [
        ("/api/v9", {}, "*/*"),
        ("/api", {"version": "9"}, "*/*"),
        ("/api", {}, "application/vnd.library.v9+json"),
        ("/api/v1", {"version": "2"}, "*/*"),
        ("/api/v2", {"version": "1"}, "*/*"),
    ],
)
def test_a_wrong_version_outranks_other_errors(
    api: httpx.Client,
    method: str,
    address: str,
    options: dict[str, Any],
    prefix: str,
    query: dict[str, str],
    accept: str,
) -> None:
    request_options = {
        **options,
        "params": {**options.get("params", {}), **query},
        "headers": {"Accept": accept, **options.get("headers", {})},
    }
    assert is_refused(api.request(method, f"{prefix}/books{address}", **request_options))


def test_an_unknown_address_of_a_wrong_version_is_refused(api: httpx.Client) -> None:
    assert is_refused(api.get("/api/v9/nothing"))
    assert is_refused(api.get("/api/v9"))
    assert is_refused(api.get("/api/nothing?version=9"))


@pytest.mark.parametrize("second", ["v1", "v2", "v9", "v1x"])
def test_the_first_segment_of_an_address_is_its_version(api: httpx.Client, second: str) -> None:
    responses = [api.get(f"/api/{first}/{second}/books") for first in ("v1", "v2")]
    assert [(response.status_code, detect_version(response)) for response in responses] == [(404, 1), (404, 2)]
    assert is_refused(api.get(f"/api/v9/{second}/books"))
    assert is_refused(api.get(f"/api/v1/{second}/books?version=2"))


@pytest.fixture
def http_client(api: httpx.Client, settings: Settings) -> httpx.Client:
    """A client that uses HTTP with a library that only serves HTTPS."""
    from library_site.wsgi import build_application, pages_handler

    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    transport = httpx.WSGITransport(build_application(pages_handler))
    return httpx.Client(transport=transport, base_url="http://127.0.0.1")


@pytest.mark.parametrize(
    "address",
    [
        "/api/books?limit=1",
        "/api/v1/books",
        "/api/v2/books",
        "/api/books?version=2",
        "/api/v9/books",
        "/api/v1/books?version=2",
        "/api/books?version=x",
    ],
)
def test_a_redirect_to_https_keeps_the_version(http_client: httpx.Client, api: httpx.Client, address: str) -> None:
    redirect = http_client.get(address)
    followed = http_client.get(redirect.headers["Location"], headers={"X-Forwarded-Proto": "https"})
    direct = api.get(address)
    assert redirect.status_code == 301
    assert (followed.status_code, detect_version(followed)) == (direct.status_code, detect_version(direct))


def test_a_redirect_to_https_keeps_the_address(http_client: httpx.Client) -> None:
    redirect = http_client.post("/webhooks/receive/branch/?x=%C3%BC")
    assert (redirect.status_code, redirect.headers["Location"]) == (
        301,
        "https://127.0.0.1/webhooks/receive/branch/?x=%C3%BC",
    )


version_texts = st.sampled_from(["1", "2", "3", "0", "x", "", "1.0", "-1"])
other_media_types = st.sampled_from(["text/html", "*/*", "application/json;q=0.9", ""])


@hypothesis_settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    segment=st.none() | version_texts,
    vendor=st.none() | version_texts | st.just("latest"),
    query=st.lists(version_texts, max_size=2),
    before=other_media_types,
    after=other_media_types,
)
def test_any_selectors_agree_on_one_version_or_are_refused(
    api: httpx.Client, segment: str | None, vendor: str | None, query: list[str], before: str, after: str
) -> None:
    media_type = LATEST if vendor == "latest" else f"application/vnd.library.v{vendor}+json"
    accept = ", ".join([before, *([] if vendor is None else [media_type]), after])
    prefix = "/api" if segment is None else f"/api/v{segment}"
    versions = {*query, *({segment} - {None}), *({"2" if vendor == "latest" else vendor} - {None})}
    response = api.get(f"{prefix}/books", params={"version": query}, headers={"Accept": accept})
    assert varies_by_accept(response)
    if versions <= {"1"} or versions == {"2"}:
        assert (response.status_code, detect_version(response)) == (200, 2 if versions == {"2"} else 1)
        assert response.headers["Content-Type"] == (JSON if vendor is None else media_type)
    else:
        assert is_refused(response)

"""A client chooses a version by path, header or query (specification, Section 9)."""

import re
from itertools import product
from typing import Any

import httpx
import pytest
from pytest_django import Settings

from tests.support.applications import open_client
from tests.support.books import build_book
from tests.support.failures import break_database

JSON = "application/json"
LATEST = "application/vnd.library+json"
TYPES = {1: "application/vnd.library.v1+json", 2: "application/vnd.library.v2+json"}
V1_BOOK = {"id", "title", "author", "year", "isbn", "genre", "available", "created_at"}
V2_BOOK = V1_BOOK | {"isbn13", "updated_at", "version"}
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
    versions = {frozenset(V1_BOOK): 1, frozenset({"detail"}): 1, frozenset(V2_BOOK): 2, frozenset({"error"}): 2}
    return versions[frozenset(body)]


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


@pytest.mark.parametrize(("version", "home"), [(1, "/api"), (1, "/api/v1"), (2, "/api/v2")])
def test_a_body_may_have_the_type_of_its_version(api: httpx.Client, version: int, home: str) -> None:
    """It does not choose the version: a body of another one is refused. Without a number it is of any."""
    own, other = TYPES[version], TYPES[3 - version]

    def send(method: str, address: str, media_type: str) -> int:
        return api.request(method, address, json=build_book(), headers={"Content-Type": media_type}).status_code

    for media_type in (own, LATEST, own.upper(), f"{own}; charset=utf-8", f" {LATEST} ;a=b"):
        assert send("POST", f"{home}/books", media_type) == 201, media_type
    address = f"{home}/books/{api.get('/api/books').json()[-1]['id']}"
    assert send("PUT", address, own) == 200
    wrong = (other, f"{TYPES[1][:-5]}", "application/vnd.library.v9+json", "application/vnd.library.v+json")
    others = ("text/json", "application/*", "application/merge-patch+json", "multipart/form-data; boundary=x")
    for media_type in (*wrong, "application/vnd.library.v2+xml", "application/vnd.librarian+json", *others):
        assert send("POST", f"{home}/books", media_type) == send("PUT", address, media_type) == 415, media_type


def test_selectors_of_a_version_agree(api: httpx.Client, book: dict[str, Any]) -> None:
    """An address without a version is version 1, and the vendor type without a number the latest one."""
    addresses = {
        1: ["/api/books", "/api/v1/books", "/api/books?version=1", "/api/v1/books?version=1"],
        2: ["/api/v2/books", "/api/books?version=2", "/api/v2/books?version=2", "/api/books?version=2&version=2"],
    }
    accepted = {1: ["*/*", TYPES[1]], 2: ["*/*", LATEST, TYPES[2]]}
    for version, address, accept in (
        (number, *pair) for number in (1, 2) for pair in product(addresses[number], accepted[number])
    ):
        response = api.get(address, headers={"Accept": accept})
        books = response.json() if version == 1 else response.json()["results"]
        assert ([one["id"] for one in books], detect_version(response)) == ([book["id"]], version), (address, accept)
        assert response.headers["Content-Type"] == (JSON if accept == "*/*" else accept)
    assert detect_version(api.get("/api/books", headers={"Accept": LATEST})) == 2
    for query in ("%76ersion=2", "version=%32", "&&version=2&"):
        assert detect_version(api.get(f"/api/books?{query}")) == 2, query


def test_a_version_that_is_not_served_is_refused_at_each_address(api: httpx.Client) -> None:
    for address, accept in (
        ("/api/v9/nothing", "*/*"),
        ("/api/v9", "*/*"),
        ("/api/nothing?version=9", "*/*"),
        ("/api/books", f"application/vnd.library.v{'9' * 5000}+json"),
        # Selectors that disagree.
        ("/api/v1/books?version=2", "*/*"),
        ("/api/v2/books", TYPES[1]),
        ("/api/v1/books", LATEST),
        ("/api/books?version=1", f"text/html, {TYPES[2]};q=0.5"),
        ("/api/books?version=2&version=1", "*/*"),
        ("/api/v2/books?version=", "*/*"),
    ):
        assert is_refused(api.get(address, headers={"Accept": accept})), (address, accept)


def test_the_version_leaves_the_rest_of_the_query_unchanged(api: httpx.Client) -> None:
    for text in ("Émile", "a&b=c", "100%", "a+b", "日本", "a;b", "#"):
        book = api.post("/api/books", json=build_book(author=f"<{text}>")).json()
        response = api.get("/api/books", params={"author": f"<{text}>", "version": "2", "limit": "5"})
        assert [book["id"] for book in response.json()["results"]] == [book["id"]], text


def test_the_pages_of_a_list_stay_in_its_version(api: httpx.Client) -> None:
    books = [api.post("/api/books", json=build_book()).json() for _ in range(2)]
    for address, accept in (("/api/books?version=2&limit=1", "*/*"), ("/api/books?limit=1", LATEST)):
        first = api.get(address, headers={"Accept": accept}).json()
        second = api.get(httpx.URL(first["next"]).raw_path.decode())
        assert "version" not in first["next"].split("?")[1]
        assert [book["id"] for book in second.json()["results"]] == [books[1]["id"]]
        assert detect_version(second) == 2


PREFERRED_TYPES = {
    TYPES[2].upper(): (2, TYPES[2]),
    f"text/html,{TYPES[2]};q=0.1,*/*": (2, TYPES[2]),
    f"{TYPES[1]};q=0.5, {TYPES[2]}": (2, TYPES[2]),
    f"{TYPES[2]};Q=0.5 , {TYPES[1]} ; q=0.9": (1, TYPES[1]),
    f"{TYPES[2]};q=0 , text/html": (1, JSON),
    f"{TYPES[2]};charset=utf-8;q=0.1, {TYPES[1]};q=0.9": (1, TYPES[1]),
    f"application/vnd.library.v9+json, {TYPES[1]};q=0.5": (1, TYPES[1]),
    f",, {TYPES[2]} ,": (2, TYPES[2]),
    f"{LATEST};q=0.5, {TYPES[1]}": (1, TYPES[1]),
    **dict.fromkeys(
        [
            "",
            "application/*",
            "application/vnd.librarian.v2+json",
            "xapplication/vnd.library.v2+json",
            'text/html;x="application/vnd.library.v2+json"',
            ";q=1,;,",
            "application/vnd.library",
            "application/vnd.library.v2" * 1_000,
        ],
        (1, JSON),
    ),
}


def test_the_preferred_vendor_type_is_served_and_other_types_choose_no_version(api: httpx.Client) -> None:
    for accept, expected in PREFERRED_TYPES.items():
        response = api.get("/api/books", headers={"Accept": accept})
        assert response.status_code == 200
        assert (detect_version(response), response.headers["Content-Type"]) == expected, accept[:99]


def test_every_response_varies_and_json_has_the_vendor_type(api: httpx.Client, book: dict[str, Any]) -> None:
    address = f"/api/books/{book['id']}"
    for version, media_type in TYPES.items():
        api.headers["Accept"] = media_type
        responses = [
            api.get("/api/books"),
            api.head(address),
            api.post("/api/books", json=build_book()),
            api.post("/api/books", content=b"{}", headers={"Content-Length": "3"}),
            api.get("/api/books", headers={"Host": "evil.example"}),
            api.get("/api/nothing"),
            api.get(address, headers={"If-Match": '"other"'}),
            api.post("/api/books", json=build_book(year="1984")),
        ]
        with break_database(ZeroDivisionError()):
            responses.append(api.post("/api/books", json=build_book()))
        assert detect_version(responses[-1]) == version
        statuses = [200, 200, 201, 400, 400, 404, 412, 422, 500]
        assert [response.status_code for response in responses] == statuses
        assert {response.headers["Content-Type"] for response in responses} == {media_type}
        assert all(map(varies_by_accept, responses))


def test_a_response_without_a_body_has_no_vendor_type(api: httpx.Client, book: dict[str, Any]) -> None:
    address = f"/api/books/{book['id']}"
    api.headers["Accept"] = LATEST
    known = {"If-None-Match": "*"}
    responses = [api.get(address, headers=known), api.get("/api/books", headers=known)]
    responses += [api.options(address), api.delete(address)]
    assert [(response.status_code, response.content) for response in responses] == [
        (status, b"") for status in (304, 304, 204, 204)
    ]
    assert all(map(varies_by_accept, responses))
    assert [response for response in responses if "vnd" in response.headers.get("Content-Type", "")] == []


def test_other_responses_are_the_same_for_every_accept(api: httpx.Client) -> None:
    for address in ("/", "/docs", "/docs/v2", "/openapi.json", "/openapi/v2.json", "/admin/login/"):
        plain, vendor = api.get(address), api.get(address, headers={"Accept": TYPES[2]})
        assert not varies_by_accept(plain)
        assert vendor.status_code == plain.status_code
        assert vendor.headers["Content-Type"] == plain.headers["Content-Type"]


@pytest.mark.parametrize("selector", SELECTORS)
def test_version_1_is_the_same_however_it_is_chosen(api: httpx.Client, book: dict[str, Any], selector: str) -> None:
    prefix, query, accept = SELECTORS[selector]
    book_address = f"/books/{book['id']}"
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", "/books/?author=AUSTEN&fields=id&cursor=x&limit=5", {}),
        ("HEAD", "/books", {}),
        ("GET", book_address, {"headers": {"If-None-Match": "*"}}),
        ("PUT", book_address, {"json": {"id": 9, "available": False, "shelf": 3}}),
        ("POST", "/books", {"json": book}),
        ("DELETE", "/books/0", {}),
    ]
    for method, address, options in requests:
        plain = api.request(method, f"/api{address}", **options)
        separator = ("&" if "?" in address else "?") if query else ""
        headers = {"Accept": accept, **options.get("headers", {})}
        chosen = api.request(method, f"{prefix}{address}{separator}{query}", **{**options, "headers": headers})
        assert (chosen.status_code, chosen.content) == (plain.status_code, plain.content), (method, address)
        assert drop_varying_headers(chosen) == drop_varying_headers(plain), (method, address)


@pytest.fixture
def http_client(api: httpx.Client, settings: Settings) -> httpx.Client:
    """A client that uses HTTP with a library that only serves HTTPS."""
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    return open_client()


def test_a_redirect_to_https_keeps_the_version(http_client: httpx.Client, api: httpx.Client) -> None:
    for address in ("/api/v1/books?limit=1", "/api/books?version=2", "/api/v9/books"):
        redirect = http_client.get(address)
        followed = http_client.get(redirect.headers["Location"], headers={"X-Forwarded-Proto": "https"})
        direct = api.get(address)
        assert redirect.status_code == 301
        assert (followed.status_code, detect_version(followed)) == (direct.status_code, detect_version(direct))


def test_a_redirect_to_https_keeps_the_address(http_client: httpx.Client) -> None:
    redirect = http_client.post("/webhooks/receive/branch/?x=%C3%BC")
    assert redirect.status_code == 301
    assert redirect.headers["Location"] == "https://127.0.0.1/webhooks/receive/branch/?x=%C3%BC"

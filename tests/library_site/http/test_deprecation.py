"""A version that will end says so in each of its answers; one that has ended is not served."""

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from os import environ
from typing import Any

import httpx
import pytest

from tests.support.books import new_book
from tests.support.serving import SECRETS, Service, serving

pytestmark = pytest.mark.once

TOLD = ("Deprecation", "Sunset", "Warning")
V1, V2 = "application/vnd.library.v1+json", "application/vnd.library.v2+json"
MIGRATION = "https://library.example/migration?from=1&to=2"
CHANGELOG = "https://library.example/changes"


@pytest.fixture(scope="module")
def deprecated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A library whose version 1 will end."""
    settings = {
        "API_V1_DEPRECATED_ON": "2026-12-01",
        "API_V1_SUNSET_ON": "2027-06-30T12:00:00+02:00",
        "API_V1_MIGRATION_URL": MIGRATION,
        "API_V1_CHANGELOG_URL": CHANGELOG,
        "PUBLIC_URL": "https://library.example/",
    }
    with serving(tmp_path_factory.mktemp("deprecated"), **settings) as running:
        yield running


@pytest.fixture
def old(deprecated: Service) -> Iterator[httpx.Client]:
    """A client of it."""
    with deprecated.client() as client:
        yield client


@pytest.fixture(scope="module")
def retired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A library whose version 1 has ended."""
    settings = {"API_V1_RETIRED": "true", "API_V1_DEPRECATED_ON": "2026-01-01", "API_V1_SUNSET_ON": "2026-06-30"}
    with serving(tmp_path_factory.mktemp("retired"), **settings) as running:
        yield running


@pytest.fixture
def later(retired: Service) -> Iterator[httpx.Client]:
    """A client of it."""
    with retired.client() as client:
        yield client


def told(answer: httpx.Response) -> list[str]:
    """What the answer says of an end."""
    relations = re.findall('rel="([a-z-]+)"', answer.headers.get("Link", ""))
    return [name for name in TOLD if name in answer.headers] + [
        relation for relation in relations if relation in ("deprecation", "describedby", "successor-version")
    ]


def all_told(answer: httpx.Response) -> bool:
    return told(answer) == [*TOLD, "deprecation", "describedby", "successor-version"]


def unsupported(answer: httpx.Response) -> None:
    """Holds the answer to the refusal of a version where 2 alone is served."""
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "UNSUPPORTED_VERSION")
    assert re.findall("[0-9]+", error["message"]) == ["2"]
    assert error["requestId"] == answer.headers["X-Request-ID"]


def test_a_deprecated_version_tells_when_it_ends_and_where_to_go(old: httpx.Client) -> None:
    headers = old.get("/api/books/1").headers
    since, until = datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 6, 30, 10, tzinfo=UTC)
    assert headers.get_list("Deprecation") == [f"@{since.timestamp():.0f}"]
    assert headers.get_list("Sunset") == ["Wed, 30 Jun 2027 10:00:00 GMT"]
    assert parsedate_to_datetime(headers["Sunset"]) == until
    assert {relation: url for url, relation in re.findall('<([^>]*)>; rel="([^"]*)"', headers["Link"])} == {
        "deprecation": MIGRATION,
        "describedby": CHANGELOG,
        "successor-version": "https://library.example/api/v2/books/1",
    }
    (warning,) = headers.get_list("Warning")
    assert re.fullmatch(r'299 - "[^"\\]*2026-12-01[^"\\]*2027-06-30[^"\\]*"', warning)


@pytest.mark.parametrize("beginning", ["/api", "/api/v1"])
def test_every_answer_of_a_deprecated_version_tells_of_its_end(old: httpx.Client, beginning: str) -> None:
    book = old.post(f"{beginning}/books", json=new_book(isbn=f"isbn of {beginning}"))
    address = f"{beginning}/books/{book.json()['id']}"
    answers = [
        book,
        old.get(address),
        old.head(address),
        old.options(address),
        old.get(f"{beginning}/books/?limit=1"),
        old.put(address, json={"year": 2000}),
        old.get(address, headers={"If-None-Match": "*"}),
        old.get(address, headers={"Host": "evil.example"}),
        old.get(f"{beginning}/books/0"),
        old.get(f"{beginning}/nothing"),
        old.get(f"{beginning}/"),
        old.patch(address),
        old.post(f"{beginning}/books", json=new_book(isbn=f"isbn of {beginning}")),
        old.get(address, headers={"If-Match": '"other"'}),
        old.post(f"{beginning}/books", content=b" " * (1024 * 1024 + 1)),
        old.post(f"{beginning}/books", content=b"{}", headers={"Content-Type": "text/plain"}),
        old.post(f"{beginning}/books", json={}),
        old.delete(address),
    ]
    statuses = [201, 200, 200, 204, 200, 200, 304, 400, 404, 404, 404, 405, 409, 412, 413, 415, 422, 200]
    assert [answer.status_code for answer in answers] == statuses
    assert [answer for answer in answers if not all_told(answer)] == []


@pytest.mark.parametrize(
    ("address", "accept"), [("/api/books?version=1", "*/*"), ("/api/books", V1), ("/api/v1/books?version=1", V1)]
)
def test_a_deprecated_version_tells_of_its_end_however_it_is_chosen(
    old: httpx.Client, address: str, accept: str
) -> None:
    answer = old.get(address, headers={"Accept": accept})
    assert answer.status_code == 200
    assert all_told(answer)


@pytest.mark.parametrize(
    ("address", "accept", "status"),
    [
        ("/api/v2/books", "*/*", 200),
        ("/api/books?version=2", "*/*", 200),
        ("/api/books", V2, 200),
        ("/api/books", "application/vnd.library+json", 200),
        ("/api/v2/books/0", "*/*", 404),
        ("/api/v2/nothing", "*/*", 404),
        ("/api/v2/books/x", "*/*", 422),
        ("/api/v9/books", "*/*", 400),
        ("/api/v1/books?version=2", "*/*", 400),
        ("/", "*/*", 200),
        ("/docs", "*/*", 200),
        ("/docs/v1", "*/*", 200),
        ("/openapi.json", "*/*", 200),
        ("/openapi/v1.json", "*/*", 200),
        ("/nowhere", "*/*", 404),
    ],
)
def test_nothing_else_tells_of_an_end(old: httpx.Client, address: str, accept: str, status: int) -> None:
    answer = old.get(address, headers={"Accept": accept})
    assert (answer.status_code, told(answer)) == (status, [])


def test_the_pages_of_version_2_are_linked_as_ever(old: httpx.Client) -> None:
    answer = old.get("/api/v2/books?limit=1")
    assert re.findall('rel="([^"]*)"', answer.headers["Link"]) == ["next"]


@pytest.mark.parametrize(
    "name", ["a%22%3E%3B,rel=x", "%0D%0AX-Evil:%201", "%E6%97%A5", "%FF", "%00", "é", "a" * 20_000]
)
def test_an_address_forges_no_header(old: httpx.Client, name: str) -> None:
    answer = old.get(f"/api/books/{name}")
    assert answer.status_code in (404, 422)
    assert all_told(answer)
    assert answer.headers["Link"].isprintable()
    assert "X-Evil" not in answer.headers


def test_a_version_without_an_end_tells_of_none(api: httpx.Client, book: dict[str, Any]) -> None:
    address = f"/api/books/{book['id']}"
    answers = [
        api.get(address),
        api.get(address, headers={"If-None-Match": "*"}),
        api.get("/api/v1/books"),
        api.get("/api/books/0"),
        api.get("/api/v2/books"),
    ]
    assert [answer.status_code for answer in answers] == [200, 304, 200, 404, 200]
    assert [told(answer) for answer in answers] == [[]] * 5
    assert [answer for answer in answers if "Link" in answer.headers] == []


def deprecated_operations(client: httpx.Client, document: str) -> set[tuple[str, str]]:
    paths = client.get(document).json()["paths"]
    return {(method, path) for path in paths for method, one in paths[path].items() if one.get("deprecated")}


VERSION_1 = {
    ("get", "/api/books"),
    ("post", "/api/books"),
    ("get", "/api/books/{book_id}"),
    ("put", "/api/books/{book_id}"),
    ("delete", "/api/books/{book_id}"),
}


@pytest.mark.parametrize(
    ("document", "expected"),
    [("/openapi/v1.json", VERSION_1), ("/openapi/v2.json", set()), ("/openapi.json", VERSION_1)],
)
def test_the_operations_of_a_deprecated_version_are_marked(
    old: httpx.Client, document: str, expected: set[tuple[str, str]]
) -> None:
    assert deprecated_operations(old, document) == expected


@pytest.mark.parametrize("document", ["/openapi/v1.json", "/openapi/v2.json", "/openapi.json"])
def test_no_operation_is_marked_by_default(api: httpx.Client, document: str) -> None:
    assert deprecated_operations(api, document) == set()


@pytest.mark.parametrize(
    ("method", "address", "accept"),
    [
        ("GET", "/api/books", "*/*"),
        ("GET", "/api/books/1", "*/*"),
        ("HEAD", "/api/books/1", "*/*"),
        ("POST", "/api/books", "*/*"),
        ("PUT", "/api/books/1", "*/*"),
        ("DELETE", "/api/books/1", "*/*"),
        ("GET", "/api/v1/books", "*/*"),
        ("GET", "/api/v1/books/1", V1),
        ("GET", "/api/books?version=1", "*/*"),
        ("GET", "/api/books", V1),
        ("GET", "/api/nothing", "*/*"),
        ("GET", "/api/v1", "*/*"),
    ],
)
def test_a_retired_version_is_not_served(later: httpx.Client, method: str, address: str, accept: str) -> None:
    answer = later.request(method, address, headers={"Accept": accept})
    assert (answer.status_code, told(answer)) == (400, [])
    if method != "HEAD":
        unsupported(answer)


@pytest.mark.parametrize(
    ("address", "accept"),
    [
        ("/api/v2/books/1", "*/*"),
        ("/api/books/1?version=2", "*/*"),
        ("/api/books/1", V2),
        ("/api/books/1", "application/vnd.library+json"),
    ],
)
def test_the_other_version_goes_on_as_ever(later: httpx.Client, address: str, accept: str) -> None:
    answer = later.get(address, headers={"Accept": accept})
    assert (answer.status_code, answer.json()["version"], told(answer)) == (200, 1, [])


def test_a_retired_version_is_not_documented(later: httpx.Client) -> None:
    document = later.get("/openapi.json").json()
    assert "/api/books" not in document["paths"]
    assert {path for path in document["paths"] if path != "/" and not path.startswith("/api/v2/")} == set()
    assert later.get("/openapi/v2.json").status_code == 200
    assert later.get("/openapi/v1.json").status_code == 404
    assert later.get("/docs/v1").status_code == 404
    assert later.get("/docs/v2").status_code == 200
    assert 'href="/docs/v2"' in later.get("/docs").text
    assert "/docs/v1" not in later.get("/docs").text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_V1_DEPRECATED_ON", "soon"),
        ("API_V1_DEPRECATED_ON", "2026-02-30"),
        ("API_V1_DEPRECATED_ON", "@1796083200"),
        ("API_V1_SUNSET_ON", "2027-13-01"),
        ("API_V1_SUNSET_ON", "30.06.2027"),
        ("API_V1_MIGRATION_URL", "migration"),
        ("API_V1_MIGRATION_URL", "javascript:alert(1)"),
        ("API_V1_MIGRATION_URL", "https://library.example/a b"),
        ("API_V1_MIGRATION_URL", 'https://library.example/>; rel="next"'),
        ("API_V1_CHANGELOG_URL", "https://library.example/é"),
        ("API_V1_CHANGELOG_URL", "https://library.example/\r\nX-Evil: 1"),
        ("API_V1_RETIRED", "perhaps"),
        ("API_V2_RETIRED", "perhaps"),
        ("PUBLIC_URL", "library.example"),
        ("PUBLIC_URL", "https://library.example/path"),
        ("PUBLIC_URL", "https://library.example\r\nX-Evil: 1"),
    ],
)
def test_an_end_that_makes_no_sense_stops_the_start(name: str, value: str) -> None:
    start = started(**{name: value})
    assert start.returncode == 1
    assert f"ImproperlyConfigured: {name}" in start.stderr


def test_a_library_without_any_version_does_not_start() -> None:
    start = started(API_V1_RETIRED="true", API_V2_RETIRED="true")
    assert start.returncode == 1
    assert "API_V1_RETIRED" in start.stderr


def test_an_empty_end_is_none() -> None:
    start = started(API_V1_DEPRECATED_ON="", API_V1_SUNSET_ON="", API_V1_MIGRATION_URL="", API_V1_RETIRED="")
    assert start.returncode == 0


def started(**settings: str) -> "subprocess.CompletedProcess[str]":
    """`manage.py check` with these settings and no other."""
    variables = {"PATH": environ["PATH"], **SECRETS, **settings}
    command = [sys.executable, "manage.py", "check"]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)

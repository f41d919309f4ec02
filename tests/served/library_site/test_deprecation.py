"""A deprecated version announces its end in each of its responses; a retired one is not served."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from os import environ
from typing import Any

import httpx
import pytest
from django.core.exceptions import ImproperlyConfigured

from library_site.http.versions import Lifecycle, get_versions
from tests.support.applications import open_client
from tests.support.books import build_book
from tests.support.forked_commands import run_forked
from tests.support.server import serve_library
from tests.support.settings import REQUIRED_SECRETS, read_settings

END_HEADERS = ("Deprecation", "Sunset", "Warning")
V1, V2 = "application/vnd.library.v1+json", "application/vnd.library.v2+json"
MIGRATION = "https://library.example/migration?from=1&to=2"
CHANGELOG = "https://library.example/changes"


@pytest.fixture(scope="module")
def deprecated_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a library whose version 1 is deprecated."""
    settings = {
        "API_V1_DEPRECATED_ON": "2026-12-01",
        "API_V1_SUNSET_ON": "2027-06-30T12:00:00+02:00",
        "API_V1_MIGRATION_URL": MIGRATION,
        "API_V1_CHANGELOG_URL": CHANGELOG,
        "PUBLIC_URL": "https://library.example/",
    }
    with serve_library(tmp_path_factory.mktemp("deprecated"), **settings) as service, service.open_client() as client:
        yield client


@pytest.fixture(scope="module")
def retired_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a library whose version 1 is retired."""
    settings = {"API_V1_RETIRED": "true", "API_V1_DEPRECATED_ON": "2026-01-01", "API_V1_SUNSET_ON": "2026-06-30"}
    with serve_library(tmp_path_factory.mktemp("retired"), **settings) as service, service.open_client() as client:
        yield client


@pytest.fixture
def all_deprecated(api: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A client of the whole application, where every version is deprecated."""
    for number, version in [*get_versions().items()]:
        lifecycle = Lifecycle(deprecated_on=datetime(2026, 12, 1, tzinfo=UTC))
        monkeypatch.setitem(get_versions(), number, replace(version, lifecycle=lifecycle))
    with open_client() as client:
        yield client


def list_end_notices(response: httpx.Response) -> list[str]:
    """Returns the headers and link relations of the response that announce an end."""
    relations = re.findall('rel="([a-z-]+)"', response.headers.get("Link", ""))
    return [name for name in END_HEADERS if name in response.headers] + [
        relation for relation in relations if relation in ("deprecation", "describedby", "successor-version")
    ]


def has_all_end_notices(response: httpx.Response) -> bool:
    return list_end_notices(response) == [*END_HEADERS, "deprecation", "describedby", "successor-version"]


def is_unsupported(response: httpx.Response) -> bool:
    """Tells whether the response refuses the version and names version 2 alone."""
    error = response.json()["error"]
    numbers = re.findall("[0-9]+", error["message"])
    expected = ("UNSUPPORTED_VERSION", ["2"], response.headers["X-Request-ID"])
    return (error["code"], numbers, error["requestId"]) == expected


def test_a_deprecated_version_says_when_it_ends_and_what_follows(deprecated_client: httpx.Client) -> None:
    headers = deprecated_client.get("/api/books/1").headers
    deprecated_on, sunset_on = datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 6, 30, 10, tzinfo=UTC)
    assert headers.get_list("Deprecation") == [f"@{deprecated_on.timestamp():.0f}"]
    assert headers.get_list("Sunset") == ["Wed, 30 Jun 2027 10:00:00 GMT"]
    assert parsedate_to_datetime(headers["Sunset"]) == sunset_on
    assert {relation: url for url, relation in re.findall('<([^>]*)>; rel="([^"]*)"', headers["Link"])} == {
        "deprecation": MIGRATION,
        "describedby": CHANGELOG,
        "successor-version": "https://library.example/api/v2/books/1",
    }
    (warning,) = headers.get_list("Warning")
    assert re.fullmatch(r'299 - "[^"\\]*2026-12-01[^"\\]*2027-06-30[^"\\]*"', warning)


def test_every_response_of_a_deprecated_version_announces_its_end(deprecated_client: httpx.Client) -> None:
    prefix = "/api/v1"
    book = deprecated_client.post("/api/books", json=build_book(isbn="deprecated"))
    address = f"{prefix}/books/{book.json()['id']}"
    responses = [
        book,
        deprecated_client.get(address),
        deprecated_client.options(address),
        deprecated_client.get(f"{prefix}/books/?limit=1"),
        deprecated_client.get(address, headers={"If-None-Match": "*"}),
        deprecated_client.get(address, headers={"Host": "evil.example"}),
        deprecated_client.get(f"{prefix}/nothing"),
        deprecated_client.post(f"{prefix}/books", content=b"{}", headers={"Content-Type": "text/plain"}),
        deprecated_client.delete(address),
    ]
    statuses = [201, 200, 204, 200, 304, 400, 404, 415, 200]
    assert [response.status_code for response in responses] == statuses
    assert [response for response in responses if not has_all_end_notices(response)] == []


def test_a_deprecated_version_announces_its_end_however_it_is_chosen(deprecated_client: httpx.Client) -> None:
    for address, accept in (("/api/books?version=1", "*/*"), ("/api/books", V1), ("/api/v1/books?version=1", V1)):
        response = deprecated_client.get(address, headers={"Accept": accept})
        assert (response.status_code, has_all_end_notices(response)) == (200, True), (address, accept)


def test_no_other_response_announces_an_end(deprecated_client: httpx.Client) -> None:
    for address, accept, status in (
        ("/api/v2/books", "*/*", 200),
        ("/api/books?version=2", "*/*", 200),
        ("/api/books", V2, 200),
        ("/api/books", "application/vnd.library+json", 200),
        ("/api/v2/nothing", "*/*", 404),
        ("/api/v9/books", "*/*", 400),
        ("/api/v1/books?version=2", "*/*", 400),
        ("/", "*/*", 200),
    ):
        response = deprecated_client.get(address, headers={"Accept": accept})
        assert (response.status_code, list_end_notices(response)) == (status, []), (address, accept)


def test_a_response_of_no_version_announces_no_end(all_deprecated: httpx.Client) -> None:
    """Also where a version is deprecated whose format the refusal has."""
    for method, address, accept, status in (
        ("GET", "/api/v9/books", "*/*", 400),
        ("GET", "/api/books?version=9", "*/*", 400),
        ("GET", "/api/books", "application/vnd.library.v9+json", 400),
        ("GET", "/api/v2/books", V1, 400),
        ("PATCH", "/api/v9/books", "*/*", 405),
        ("GET", "/", "*/*", 200),
        ("GET", "/openapi/v1.json", "*/*", 200),
        ("GET", "/nowhere", "*/*", 404),
    ):
        response = all_deprecated.request(method, address, headers={"Accept": accept})
        assert (response.status_code, list_end_notices(response)) == (status, []), (method, address, accept)


def test_the_latest_version_has_no_successor(all_deprecated: httpx.Client) -> None:
    for address, status in (("/api/v2/books", 200), ("/api/v2/books/0", 404), ("/api/v2/no", 404)):
        response = all_deprecated.get(address)
        assert (response.status_code, list_end_notices(response)) == (status, ["Deprecation", "Warning"])


def test_the_pages_of_version_2_keep_their_links(deprecated_client: httpx.Client) -> None:
    response = deprecated_client.get("/api/v2/books?limit=1")
    assert re.findall('rel="([^"]*)"', response.headers["Link"]) == ["next"]


def test_an_address_forges_no_header(deprecated_client: httpx.Client) -> None:
    for name in ("a%22%3E%3B,rel=x", "%0D%0AX-Evil:%201", "%E6%97%A5", "%FF", "%00", "é", "a" * 20_000):
        response = deprecated_client.get(f"/api/books/{name}")
        assert response.status_code in (404, 422)
        assert has_all_end_notices(response), name
        assert response.headers["Link"].isprintable()
        assert "X-Evil" not in response.headers


def list_deprecated_operations(client: httpx.Client, document: str) -> set[tuple[str, str]]:
    paths = client.get(document).json()["paths"]
    return {
        (method, path) for path in paths for method, operation in paths[path].items() if operation.get("deprecated")
    }


V1_OPERATIONS = {
    ("get", "/api/books"),
    ("post", "/api/books"),
    ("get", "/api/books/{book_id}"),
    ("put", "/api/books/{book_id}"),
    ("delete", "/api/books/{book_id}"),
}


def test_the_operations_of_a_deprecated_version_alone_are_marked(
    api: httpx.Client, deprecated_client: httpx.Client
) -> None:
    marked = {"/openapi/v1.json": V1_OPERATIONS, "/openapi/v2.json": set[Any](), "/openapi.json": V1_OPERATIONS}
    for document, expected in marked.items():
        assert list_deprecated_operations(deprecated_client, document) == expected
        assert list_deprecated_operations(api, document) == set()


def test_a_retired_version_is_not_served(retired_client: httpx.Client) -> None:
    for method, address, accept in (
        ("GET", "/api/books", "*/*"),
        ("HEAD", "/api/books/1", "*/*"),
        ("POST", "/api/books", "*/*"),
        ("GET", "/api/v1/books", "*/*"),
        ("GET", "/api/books?version=1", "*/*"),
        ("GET", "/api/books", V1),
        ("GET", "/api/nothing", "*/*"),
        ("GET", "/api/v1", "*/*"),
    ):
        response = retired_client.request(method, address, headers={"Accept": accept})
        assert (response.status_code, list_end_notices(response)) == (400, []), (method, address, accept)
        assert method == "HEAD" or is_unsupported(response)


def test_the_other_version_is_still_served(retired_client: httpx.Client) -> None:
    for address, accept in (
        ("/api/v2/books/1", "*/*"),
        ("/api/books/1?version=2", "*/*"),
        ("/api/books/1", V2),
        ("/api/books/1", "application/vnd.library+json"),
    ):
        response = retired_client.get(address, headers={"Accept": accept})
        assert (response.status_code, response.json()["version"], list_end_notices(response)) == (200, 1, [])


def test_a_retired_version_is_not_documented(retired_client: httpx.Client) -> None:
    document = retired_client.get("/openapi.json").json()
    assert "/api/books" not in document["paths"]
    assert {path for path in document["paths"] if path != "/" and not path.startswith("/api/v2/")} == set()
    assert retired_client.get("/openapi/v2.json").status_code == 200
    assert retired_client.get("/openapi/v1.json").status_code == 404
    assert retired_client.get("/docs/v1").status_code == 404
    assert retired_client.get("/docs/v2").status_code == 200
    assert 'href="/docs/v2"' in retired_client.get("/docs").text
    assert "/docs/v1" not in retired_client.get("/docs").text


INVALID_SETTINGS = {
    "API_V1_DEPRECATED_ON": ["soon", "2026-02-30", "@1796083200"],
    "API_V1_SUNSET_ON": ["2027-13-01", "30.06.2027"],
    "API_V1_MIGRATION_URL": ["migration", "javascript:alert(1)", "https://library.example/a b"],
    "API_V1_CHANGELOG_URL": ["https://library.example/é", 'https://library.example/>; rel="next"'],
    "API_V1_RETIRED": ["perhaps"],
    "API_V2_RETIRED": ["perhaps"],
    "PUBLIC_URL": ["library.example", "https://library.example/path", "https://library.example\r\nX-Evil: 1"],
}


def test_an_invalid_end_stops_the_start() -> None:
    for name, values in INVALID_SETTINGS.items():
        for value in values:
            with pytest.raises(ImproperlyConfigured, match=f"^{name} "):
                read_settings({name: value})


def test_a_library_without_any_version_does_not_start() -> None:
    variables = {"PATH": environ["PATH"], **REQUIRED_SECRETS, "API_V1_RETIRED": "true", "API_V2_RETIRED": "true"}
    start = run_forked(variables, "check")
    assert start.returncode == 1
    assert start.stderr.startswith("API_V1_RETIRED")


def test_an_empty_end_is_no_end() -> None:
    names = ("API_V1_DEPRECATED_ON", "API_V1_SUNSET_ON", "API_V1_MIGRATION_URL", "API_V1_RETIRED")
    [lifecycle] = read_settings(dict.fromkeys(names, ""))["API_LIFECYCLES"].values()
    assert not any(lifecycle.values())

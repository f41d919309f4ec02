"""Answers are compressed for clients that accept gzip, with the setting GZIP."""

from collections.abc import Iterator

import httpx
import pytest
from pytest_django import Settings

from tests.support.applications import open_client
from tests.support.books import build_book
from tests.support.oauth_flows import create_key_header, create_librarian

LONG_TITLE = "Emma " * 90
BOOKS = "/api/v2/books"


@pytest.fixture
def gzip_client(api: httpx.Client, settings: Settings) -> Iterator[httpx.Client]:
    settings.GZIP = True
    with open_client() as client:
        client.headers["Accept-Encoding"] = "gzip"
        yield client


def add_books(client: httpx.Client) -> httpx.Response:
    """Adds so many that a list is worth to be compressed."""
    first, *_ = [client.post(BOOKS, json=build_book(title=LONG_TITLE, isbn=str(number))) for number in range(4)]
    return first


def test_a_list_is_compressed_and_its_etag_is_another_one(api: httpx.Client, gzip_client: httpx.Client) -> None:
    add_books(gzip_client)
    plain, compressed, head = api.get(BOOKS), gzip_client.get(BOOKS), gzip_client.head(BOOKS)
    etag = plain.headers["ETag"][:-1] + '-gzip"'
    for response in (compressed, head):
        assert (response.headers["Content-Encoding"], response.headers["ETag"]) == ("gzip", etag)
        assert "Accept-Encoding" in response.headers["Vary"]
    assert compressed.content == plain.content
    assert int(compressed.headers.get("Content-Length", 0)) < len(plain.content)
    for known in (etag, plain.headers["ETag"]):
        unchanged = gzip_client.get(BOOKS, headers={"If-None-Match": known})
        assert (unchanged.status_code, unchanged.headers["ETag"]) == (304, known)


def test_a_book_is_changed_with_the_etag_of_a_compressed_response(gzip_client: httpx.Client) -> None:
    address = f"{BOOKS}/{add_books(gzip_client).json()['id']}"
    body = {"title": LONG_TITLE + LONG_TITLE[:50], "author": "J" * 300, "genre": "N" * 90}
    etag = gzip_client.patch(address, json=body).headers["ETag"]
    read = gzip_client.get(address)
    assert read.headers["ETag"] == etag
    for expected in (200, 412):
        response = gzip_client.patch(address, json={"year": expected}, headers={"If-Match": etag})
        assert response.status_code == expected


def test_an_export_is_compressed_piece_by_piece(gzip_client: httpx.Client) -> None:
    add_books(gzip_client)
    response = gzip_client.get(BOOKS, headers={"Accept": "text/csv"})
    assert response.headers["Content-Encoding"] == "gzip"
    assert response.text.count(LONG_TITLE.strip()) == 4


def test_who_does_not_accept_gzip_gets_none(gzip_client: httpx.Client) -> None:
    add_books(gzip_client)
    for accepted in ("", "br", "*", "gzip; q=0.0"):
        response = gzip_client.get(BOOKS, headers={"Accept-Encoding": accepted})
        assert "Content-Encoding" not in response.headers, accepted
        assert "-gzip" not in response.headers["ETag"]
        assert "Accept-Encoding" in response.headers["Vary"]
    for accepted in ("GZIP", "br, gzip;q=0.1"):
        response = gzip_client.get(BOOKS, headers={"Accept-Encoding": accepted})
        assert response.headers["Content-Encoding"] == "gzip", accepted


def test_what_is_small_secret_or_elsewhere_is_not_compressed(gzip_client: httpx.Client) -> None:
    add_books(gzip_client)
    key = create_key_header(create_librarian("ada", "Developers"))
    operations = [
        gzip_client.post(f"{BOOKS}/1000/restore"),
        gzip_client.get(f"{BOOKS}?limit=1&fields=id"),
        gzip_client.get("/docs"),
    ]
    for number in range(4):
        gzip_client.post("/api/v2/api-keys", json={"name": f"{number}" * 100, "scopes": "read"}, headers=key)
    secret = gzip_client.get("/api/v2/api-keys", headers=key)
    assert len(secret.content) > 1024
    assert [response.headers.get("Content-Encoding") for response in [*operations, secret]] == [None] * 4

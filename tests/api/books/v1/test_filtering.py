"""GET /api/books with author and genre."""

from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.responses import list_problems
from tests.support.text_matches import TEXT_MATCHES

FILTERS = ["author", "genre"]


@pytest.mark.parametrize(("stored", "text"), TEXT_MATCHES)
def test_a_filter_finds_a_part_in_any_case(api: httpx.Client, stored: str, text: str) -> None:
    others = {"author": "-", "genre": "-"}
    books = {name: api.post("/api/books", json=build_book(**{**others, name: stored})).json() for name in FILTERS}
    api.post("/api/books", json=build_book(**others))
    for name, book in books.items():
        assert api.get("/api/books", params={name: text}).json() == [book]


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize(
    ("stored", "text"),
    [
        pytest.param("Jane Austen", "Janet", id="longer"),
        pytest.param("Jane Austen", "JaneAusten", id="without its space"),
        pytest.param("Jane Austen", " Jane", id="space before"),
        pytest.param("Jane Austen", "Austen ", id="space after"),
        pytest.param("Jane Austen", "Jane  Austen", id="two spaces"),
        pytest.param("JaneAusten", " ", id="a blank"),
        pytest.param("Emile", "É", id="another accent"),
        pytest.param("Émile", "emile", id="no accent"),
        pytest.param("Jane Austen", "%", id="percent"),
        pytest.param("Jane Austen", "J%n", id="percent inside"),
        pytest.param("Jane Austen", "_", id="underscore"),
        pytest.param("Jane Austen", "J_ne", id="underscore inside"),
        pytest.param("Jane Austen", "\\", id="backslash"),
        pytest.param("100%", "\\%", id="backslash before percent"),
        pytest.param("Jane Austen", "*", id="star"),
        pytest.param("Jane Austen", "J.*n", id="pattern"),
        pytest.param("Jane Austen", "' OR '1'='1", id="quotes"),
        pytest.param("Jane Austen", "\ufffd", id="replacement character"),
    ],
)
def test_a_filter_takes_every_character_as_itself(api: httpx.Client, name: str, stored: str, text: str) -> None:
    api.post("/api/books", json=build_book(**{name: stored}))
    response = api.get("/api/books", params={name: text})
    assert (response.status_code, response.json()) == (200, [])


@pytest.mark.parametrize("query", ["author=", "genre=", "author=&genre=", "author"])
def test_an_empty_filter_matches_all(api: httpx.Client, book: dict[str, Any], query: str) -> None:
    blank_book = api.post("/api/books", json=build_book(author="", genre="")).json()
    assert api.get(f"/api/books?{query}").json() == [book, blank_book]


def test_a_blank_filter_finds_blanks(api: httpx.Client) -> None:
    api.post("/api/books", json=build_book(author="Homer"))
    match = api.post("/api/books", json=build_book(author="Jane Austen")).json()
    assert api.get("/api/books?author=%20").json() == [match]


def test_a_book_must_match_both_filters(api: httpx.Client) -> None:
    api.post("/api/books", json=build_book(author="Jane Austen", genre="Letters"))
    api.post("/api/books", json=build_book(author="Mary Shelley", genre="Novel"))
    match = api.post("/api/books", json=build_book(author="Jane Austen", genre="Novel")).json()
    assert api.get("/api/books", params={"author": "austen", "genre": "novel"}).json() == [match]


def test_the_author_filter_searches_authors_only(api: httpx.Client) -> None:
    api.post("/api/books", json=build_book(title="Austen", author="Homer", genre="Austen", isbn="Austen"))
    assert api.get("/api/books", params={"author": "Austen"}).json() == []


def test_a_filtered_list_is_paged_too(api: httpx.Client) -> None:
    books = [api.post("/api/books", json=build_book(author=author)).json() for author in ("Ann", "Bo", "ANNE", "Hanna")]
    response = api.get("/api/books", params={"author": "ann", "skip": 1, "limit": 1})
    assert response.json() == [books[2]]


def test_a_filtered_list_is_ordered_by_id(api: httpx.Client) -> None:
    ids = [api.post("/api/books", json=build_book(author=f"{letter} Ann")).json()["id"] for letter in "CAB"]
    assert [book["id"] for book in api.get("/api/books", params={"author": "ann"}).json()] == sorted(ids)


def test_a_filter_follows_a_change(api: httpx.Client, book: dict[str, Any]) -> None:
    api.put(f"/api/books/{book['id']}", json={"author": "ÉMILE ZOLA", "genre": "Roman"})
    assert [match["id"] for match in api.get("/api/books?author=%C3%A9mile&genre=ROMAN").json()] == [book["id"]]
    assert api.get("/api/books", params={"author": book["author"]}).json() == []


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize(
    "character", ["a", "ΐ", "𐐨", "%", "\\"], ids=["ASCII", "three folded", "beyond the BMP", "%", "\\"]
)
def test_a_filter_may_have_500_characters(api: httpx.Client, book: dict[str, Any], name: str, character: str) -> None:
    response = api.get("/api/books", params={name: character * 500})
    assert (response.status_code, response.json()) == (200, [])


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("character", ["a", " ", "ΐ", "𐐨"], ids=["ASCII", "blank", "three folded", "beyond the BMP"])
def test_a_filter_of_501_characters_is_refused(api: httpx.Client, name: str, character: str) -> None:
    response = api.get("/api/books", params={name: character * 501})
    assert (response.status_code, list_problems(response)) == (422, [(f"query.{name}", "string_too_long")])


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("text", ["%00", "a%00", "%00a"])
def test_a_filter_with_nul_is_refused(api: httpx.Client, name: str, text: str) -> None:
    response = api.get(f"/api/books?{name}={text}")
    assert (response.status_code, list_problems(response)) == (422, [(f"query.{name}", "value_error")])

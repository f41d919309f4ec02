"""Which books GET /api/v2/books finds."""

from typing import Any

import httpx

from tests.support.books import build_book
from tests.support.pages import LIST_URL, list_ids

TEXT_FILTERS = ["title", "author", "genre"]


def create_book(api: httpx.Client, **fields: Any) -> int:
    """Creates a book through version 1, which accepts any text, and returns its id."""
    response = api.post("/api/books", json=build_book(**fields))
    assert response.status_code == 201
    book_id: int = response.json()["id"]
    return book_id


def find_ids(api: httpx.Client, **query: str) -> list[int]:
    response = api.get(LIST_URL, params={"limit": "500", **query})
    assert response.status_code == 200
    return list_ids(response)


def test_an_empty_filter_matches_all(api: httpx.Client) -> None:
    books = [create_book(api), create_book(api, title="", author="", genre="", isbn="")]
    for query in ("title=", "author=", "genre=", "isbn=", "q=", "q=%20", "q=%C2%A0", "title=&q=&isbn="):
        assert list_ids(api.get(f"{LIST_URL}?{query}")) == books, query


def test_each_filter_looks_at_its_own_field(api: httpx.Client) -> None:
    fields = [*TEXT_FILTERS, "isbn"]
    books = {field: create_book(api, **{**dict.fromkeys(TEXT_FILTERS, "-"), field: "Austen"}) for field in fields}
    assert {name: find_ids(api, **{name: "Austen"}) for name in fields} == {name: [books[name]] for name in fields}


ISBN_SPELLINGS = [
    "9780141439518",
    "0141439513",
    "978-0-14-143951-8",
    "0-14-143951-3",
    "978\u20100\u201114\u2013143951\u22128",
    "ISBN-10: 0-14-143951-3",
]


def test_books_of_one_isbn_in_any_spelling_are_found_in_any_spelling(api: httpx.Client) -> None:
    ids = [create_book(api, isbn=stored) for stored in ISBN_SPELLINGS]
    create_book(api, isbn="9780141439587")
    assert [find_ids(api, isbn=text) for text in ISBN_SPELLINGS] == [ids] * len(ISBN_SPELLINGS)


def test_a_text_that_is_no_isbn_is_found_by_exact_match(api: httpx.Client) -> None:
    texts = ["shelf-9", "9780141439519", "Ä%_\\'", " 1 ", "0X41439513", "٩٧٨٠١٤١٤٣٩٥١٨"]
    ids = [create_book(api, isbn=isbn) for isbn in texts]
    create_book(api, isbn="9780141439518")
    assert [find_ids(api, isbn=isbn) for isbn in texts] == [[book_id] for book_id in ids]
    others = ["SHELF-9", "shelf", "shelf-9 ", " shelf-9", "shelf-_", "%", "shelf9", "978014143951"]
    assert [text for text in others if find_ids(api, isbn=text)] == []


def test_years_are_bounded_inclusively(api: httpx.Client) -> None:
    years = [-(2**31), -44, 0, 1813, 2**31 - 1]
    for year in years:
        create_book(api, year=year)
    expected = {
        "year_min=1813": years[3:],
        "year_max=1813": years[:4],
        "year_min=-44&year_max=0": [-44, 0],
        "year_min=-0&year_max=000": [0],
        "year_min=1&year_max=0": [],
        f"year_min={2**31 - 1}": years[4:],
        f"year_min={2**31}": [],
        f"year_min={'9' * 5_000}": [],
        f"year_max={2**31}": years,
        f"year_max={-(2**31)}": years[:1],
        f"year_max={-(2**31) - 1}": [],
        f"year_min={-(10**30)}&year_max={10**30}": years,
    }
    for query, found in expected.items():
        for others in ("", "&count=true&sort=-title&q=jane"):
            page = api.get(f"{LIST_URL}?{query}{others}").json()
            assert sorted(book["year"] for book in page["results"]) == found, query[:40]
            assert page.get("count", len(found)) == len(found), query[:40]


def test_every_word_is_searched_in_title_author_and_genre(api: httpx.Client) -> None:
    book_id = create_book(api)
    create_book(api, title="-", author="-", genre="-", isbn="pride prejudice jane austen novel")
    searches = {
        "two words of one field in another order": "prejudice pride",
        "words of three fields": "austen pride novel",
        "any space between": "AUSTEN  \t PRIDE\n",
        "no-break and wide spaces": "austen\u00a0pride\u3000novel",
        "parts of words": "judi ove ane",
        "a letter": "j",
        "two letters": "ja au",
        "a word twice": "pride pride",
        "20 words": "e " * 20,
    }
    assert [name for name, text in searches.items() if find_ids(api, q=text) != [book_id]] == []


def test_a_book_must_match_all_filters(api: httpx.Client) -> None:
    values = {"title": "Émile", "author": "Rousseau", "genre": "Novel", "year": 1762, "isbn": "0-14-143951-3"}
    others = {"title": "Julie", "author": "Zola", "genre": "Letters", "year": 1761, "isbn": "shelf"}
    for name, other in others.items():
        create_book(api, **{**values, "isbn": f"other {name}", name: other})
    book_id = create_book(api, **values)
    query = {"title": "é", "author": "ROUSS", "genre": "nov", "isbn": "9780141439518", "q": "émile rousseau"}
    assert find_ids(api, **query, year_min="1762", year_max="1762", available="true") == [book_id]
    assert find_ids(api, **query, available="false") == []

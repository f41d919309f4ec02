"""What the corpus does not show of bodies of version 1: it ignores unknown fields, and repeats nothing it refuses."""

import json
from typing import Any

import httpx

from tests.support.books import build_book


def test_the_value_of_an_unknown_field_does_not_matter(api: httpx.Client) -> None:
    fields = ['"shelf": null', '"shelf": {"title": ["nested"]}', '"\\ud800\\u0000": "\\ud800"', '"": 1']
    fields += ['"non_field_errors": "x"', f'"shelf": {"9" * 5000}']
    for field in fields:
        response = api.post("/api/books", content=json.dumps(build_book()).replace("{", f"{{{field}, ", 1))
        assert response.status_code == 201, field


def test_the_last_of_equal_members_counts_and_a_year_is_finite(api: httpx.Client, book: dict[str, Any]) -> None:
    body = json.dumps(build_book(title="last")).replace("{", '{"title": 1, ', 1).encode()
    assert api.post("/api/books", content=body.ljust(2**20)).json()["title"] == "last"
    for year in ("1e400", "Infinity"):
        response = api.put(f"/api/books/{book['id']}", content=f'{{"year": {year}}}')
        assert response.status_code == 422, year


def test_a_refusal_does_not_repeat_the_request(api: httpx.Client, book: dict[str, Any]) -> None:
    for body in (
        b'{"title": 1, "year": "Zanzibar"}',
        b'{"title": "%s"}' % (b"Zanzibar" * 200),
        b'{"title": "Zanzibar\\u0000"}',
        b'{"title": "Zanzibar\\ud800"}',
        b'{"Zanzibar": 1, "title": 1}',
        b'"Zanzibar"',
        b'{"Zanzibar": NaN}',
        b'{"Zanzibar"',
    ):
        response = api.put(f"/api/books/{book['id']}", content=body)
        assert (response.status_code, "Zanzibar" in response.text) == (422, False), body
    for end in ("/Zanzibar", "?skip=Zanzibar", f"?author={'Zanzibar' * 100}", "?genre=Zanzibar%00"):
        response = api.get(f"/api/books{end}")
        assert (response.status_code, "Zanzibar" in response.text) == (422, False), end

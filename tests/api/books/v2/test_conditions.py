"""Conditional requests on one book (RFC 9110, 13)."""

from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.pages import LIST_URL

STALE = '"of another time"'
CHANGES = ("PUT", "PATCH")
EMMA = {"title": "Emma", "author": "J. Austen", "year": 1815, "isbn": "9780141439587", "genre": "Comedy"}


def test_every_response_with_a_book_has_its_strong_etag_which_is_never_used_again(api: httpx.Client) -> None:
    creation = api.post(LIST_URL, json=build_book())
    address = creation.headers["Location"]
    tags = [creation.headers["ETag"]]
    for method, body in (("PUT", EMMA), ("PATCH", {"year": 1}), ("PUT", EMMA), ("PATCH", {"year": 1})):
        assert api.get(address).headers["ETag"] == tags[-1]
        tags.append(api.request(method, address, json=body).headers["ETag"])
    tags.append(api.post(LIST_URL, json=build_book()).headers["ETag"])
    assert len(set(tags)) == 6
    assert {tag[0] + tag[-1] for tag in tags} == {'""'}


def test_the_book_a_client_has_is_not_sent_again(
    api: httpx.Client, stored_book: dict[str, Any], address: str, etag: str
) -> None:
    for value in (etag, "*", f"{STALE}, {etag}", f"W/{etag}", f"W/{STALE}, W/{etag}", f"{etag},"):
        response = api.get(address, headers={"If-None-Match": value})
        assert (value, response.status_code, response.content, response.headers["ETag"]) == (value, 304, b"", etag)
    for value in (STALE, f"W/{STALE}", "unquoted", ""):
        response = api.get(address, headers={"If-None-Match": value})
        assert (value, response.json(), response.headers["ETag"]) == (value, stored_book, etag)
    # A change by the other version counts.
    api.put(address.replace("/v2", ""), json={"title": "Emma"})
    response = api.get(address, headers={"If-None-Match": etag})
    assert (response.status_code, response.json()["title"], response.headers["ETag"] == etag) == (200, "Emma", False)


@pytest.mark.parametrize("value", ["{etag}", "*", f"{STALE}, {{etag}}"])
def test_a_book_in_the_state_asked_for_is_read_changed_and_deleted(api: httpx.Client, address: str, value: str) -> None:
    for method in ("GET", *CHANGES, "DELETE"):
        headers = {"If-Match": value.format(etag=api.get(address).headers["ETag"])}
        body = {**EMMA, "genre": method} if method in CHANGES else None
        response = api.request(method, address, json=body, headers=headers)
        assert (method, response.status_code) == (method, 204 if method == "DELETE" else 200)
    assert api.get(address).status_code == 404


def test_a_book_in_another_state_is_left_alone(
    api: httpx.Client, stored_book: dict[str, Any], address: str, etag: str
) -> None:
    stale = [STALE, f"W/{etag}", f"W/{etag}, {STALE}", "unquoted"]
    cases = [(method, "If-Match", value) for method in ("GET", *CHANGES, "DELETE") for value in stale]
    known = [etag, f"W/{etag}", "*"]
    cases += [(method, "If-None-Match", value) for method in (*CHANGES, "DELETE") for value in known]
    for method, name, value in cases:
        response = api.request(method, address, json=EMMA if method in CHANGES else None, headers={name: value})
        assert response.status_code == 412, (method, value)
    assert api.get(address).json() == stored_book


def test_the_state_before_a_change_is_refused_after_it(api: httpx.Client, address: str, etag: str) -> None:
    first = api.patch(address, json={"year": 2000}, headers={"If-Match": etag})
    second = api.patch(address, json={"year": 3000}, headers={"If-Match": etag})
    third = api.put(address, json=EMMA, headers={"If-Match": first.headers["ETag"]})
    assert [response.status_code for response in (first, second, third)] == [200, 412, 200]


def test_the_two_versions_have_different_etags(api: httpx.Client, etag: str, address: str) -> None:
    other_address = address.replace("/v2", "")
    response = api.get(other_address, headers={"If-None-Match": etag})
    assert (response.status_code, response.headers["ETag"] == etag) == (200, False)
    assert api.get(other_address, headers={"Accept": "application/vnd.library.v2+json"}).headers["ETag"] == etag

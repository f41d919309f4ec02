"""Conditional requests on one book (RFC 9110, 13), in both versions."""

from typing import Any

import httpx
import pytest

from tests.support.api_versions import VERSION_1, VERSION_2, APIVersion, with_each_version

STALE = '"of another time"'
EMMA = {"title": "Emma", "author": "J. Austen", "year": 1815, "isbn": "9780141439587", "genre": "Comedy"}
SEVERAL = ["{etag}", "*", f"{STALE}, {{etag}}"]

pytestmark = with_each_version


def test_every_response_with_a_book_has_its_strong_etag(api: httpx.Client, version: APIVersion) -> None:
    creation = version.create(api)
    address = creation.headers["Location"]
    tags = [creation.headers["ETag"]]
    for method in version.changes:
        assert api.get(address).headers["ETag"] == tags[-1]
        tags.append(api.request(method, address, json={**EMMA, "year": len(tags)}).headers["ETag"])
    assert api.get(address).headers["ETag"] == tags[-1]
    tags.append(version.create(api).headers["ETag"])
    assert len(set(tags)) == len(version.changes) + 2
    assert {tag[0] + tag[-1] for tag in tags} == {'""'}


def test_no_etag_is_used_twice(api: httpx.Client, version: APIVersion, stored_book: Any, address: str) -> None:
    back = {name: stored_book[name] for name in EMMA}
    assert len({api.put(address, json=body).headers["ETag"] for body in (EMMA, back, EMMA, back)}) == 4


def test_the_book_a_client_has_is_not_sent_again(api: httpx.Client, address: str, etag: str) -> None:
    for value in [*SEVERAL, "W/{etag}", f"W/{STALE}, W/{{etag}}", "{etag},"]:
        response = api.get(address, headers={"If-None-Match": value.format(etag=etag)})
        assert (value, response.status_code, response.content, response.headers["ETag"]) == (value, 304, b"", etag)


def test_a_book_in_another_state_is_sent(api: httpx.Client, stored_book: Any, address: str, etag: str) -> None:
    for value in [STALE, f"W/{STALE}", "unquoted", ""]:
        response = api.get(address, headers={"If-None-Match": value})
        assert (value, response.status_code, response.json(), response.headers["ETag"]) == (
            value,
            200,
            stored_book,
            etag,
        )


def test_a_changed_book_is_sent_again(api: httpx.Client, version: APIVersion, address: str, etag: str) -> None:
    for change in ({"title": "Emma"}, {"isbn": "9780141439587"}, {"year": 0}):
        api.put(address.replace("/v2", ""), json=change)
        response = api.get(address, headers={"If-None-Match": etag})
        assert (response.status_code, response.json()) == (200, {**response.json(), **change})
        assert response.headers["ETag"] != etag


@pytest.mark.parametrize("value", SEVERAL)
def test_a_book_in_the_state_asked_for_is_read_changed_and_deleted(
    api: httpx.Client, version: APIVersion, address: str, value: str
) -> None:
    for method in ("GET", *version.changes, "DELETE"):
        headers = {"If-Match": value.format(etag=api.get(address).headers["ETag"])}
        body = {**EMMA, "genre": method} if method in version.changes else None
        response = api.request(method, address, json=body, headers=headers)
        assert (method, response.status_code) == (method, version.deleted[0] if method == "DELETE" else 200)
    assert api.get(address).status_code == 404


def test_a_book_in_another_state_is_left_alone(
    api: httpx.Client, version: APIVersion, stored_book: Any, address: str, etag: str
) -> None:
    stale = [STALE, "W/{etag}", f"W/{{etag}}, {STALE}", "unquoted"]
    cases = [(method, "If-Match", value) for method in ("GET", *version.changes, "DELETE") for value in stale]
    known = ["{etag}", "W/{etag}", "*"]
    cases += [(method, "If-None-Match", value) for method in (*version.changes, "DELETE") for value in known]
    for method, name, value in cases:
        body = EMMA if method in version.changes else None
        response = api.request(method, address, json=body, headers={name: value.format(etag=etag)})
        assert (method, value, version.parse_error(response)) == (method, value, (412, []))
    read = api.get(address)
    assert (read.json(), read.headers["ETag"]) == (stored_book, etag)


def test_the_state_before_a_change_is_refused_after_it(
    api: httpx.Client, version: APIVersion, address: str, etag: str
) -> None:
    method = version.changes[-1]
    first = api.request(method, address, json={"year": 2000}, headers={"If-Match": etag})
    second = api.request(method, address, json={"year": 3000}, headers={"If-Match": etag})
    third = api.put(address, json=EMMA, headers={"If-Match": first.headers["ETag"]})
    assert [response.status_code for response in (first, second, third)] == [200, 412, 200]


def test_an_unknown_book_is_in_no_state(api: httpx.Client, version: APIVersion) -> None:
    for headers in ({}, {"If-Match": "*"}, {"If-Match": STALE}, {"If-None-Match": "*"}):
        for query in ("", "?fields=nothing", "?fields=", "?shelf=1", "?fields=nothing&shelf=1"):
            for method in ("GET", *version.changes, "DELETE"):
                body: dict[str, Any] | None = {} if method in version.changes else None
                response = api.request(method, f"{version.books}/987654321{query}", json=body, headers=headers)
                assert (response.status_code, "Book not found" in response.text) == (404, True), (
                    method,
                    query,
                    headers,
                )


def test_a_bad_body_outranks_the_state_and_that_an_isbn_in_use(
    api: httpx.Client, version: APIVersion, address: str
) -> None:
    in_use = {**EMMA, "isbn": version.create(api).json()["isbn"]}
    for method in version.changes:
        bodies = [{**EMMA, "year": "1984"}, in_use]
        responses = [api.request(method, address, json=body, headers={"If-Match": STALE}) for body in bodies]
        assert [response.status_code for response in responses] == [422, 412]


def test_the_two_versions_have_different_etags(api: httpx.Client, version: APIVersion, etag: str, address: str) -> None:
    [other] = {VERSION_1, VERSION_2} - {version}
    response = api.get(address.replace(version.books, other.books), headers={"If-None-Match": etag})
    assert (response.status_code, response.headers["ETag"] == etag) == (200, False)
    by_accept = {"Accept": f"application/vnd.library.v{2 if version is VERSION_2 else 1}+json"}
    assert api.get(address.replace("/v2", ""), headers=by_accept).headers["ETag"] == etag

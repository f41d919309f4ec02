"""Strange parameters of a Content-Type, and a length that is not true, cause no failure."""

import httpx

from tests.support.books import build_book

MEDIA_TYPES = [
    "application/json;x*=bogus''%41",
    "multipart/form-data;charset*=utf-8''%00",
    "text/plain;charset=hex",
    "application/json;charset=utf-7",
    "multipart/form-data;charset=undefined",
    "multipart/form-data;=",
    ';"',
]
REQUESTS = [("GET", "/api/books?author=+2AA-%41"), ("POST", "/api/books?%41"), ("POST", "/admin/login/?x=%41")]


def test_strange_parameters_harm_nothing(api: httpx.Client) -> None:
    for media_type in MEDIA_TYPES:
        for method, address in REQUESTS:
            response = api.request(method, address, headers={"Content-Type": media_type})
            assert response.status_code < 500, (media_type, method, address)


def test_a_body_cannot_say_it_is_larger_than_it_is(api: httpx.Client) -> None:
    response = api.post("/api/books", json=build_book(), headers={"Content-Length": str(2**63)})
    assert response.status_code == 413

"""Strange parameters of a Content-Type, and a length that is not true, cause no failure."""

import httpx

from tests.support.books import build_book

PARAMETERS = ["x*=bogus''%41", "charset*=utf-8''%00", "charset=hex", "charset=utf-7", "charset=undefined", "=", '"']
MEDIA_TYPES = ["application/json", "multipart/form-data", "text/plain", ""]
ADDRESSES = ["/api/books?author=+2AA-%41", "/admin/login/?x=%41", "/docs?%41"]


def test_strange_parameters_harm_nothing(api: httpx.Client) -> None:
    failures = []
    for media_type in [f"{media_type};{parameter}" for media_type in MEDIA_TYPES for parameter in PARAMETERS]:
        for address in ADDRESSES:
            for method in ("GET", "POST"):
                response = api.request(method, address, headers={"Content-Type": media_type})
                if response.status_code >= 500:
                    failures.append((media_type, method, address))
    assert not failures


def test_the_charset_of_json_is_ignored(api: httpx.Client) -> None:
    headers = {"Content-Type": "application/json; charset=latin-1"}
    response = api.post(
        "/api/books", content='{"title": "É", "author": "", "year": 1, "isbn": "", "genre": ""}', headers=headers
    )
    assert response.json()["title"] == "É"


def test_a_body_cannot_say_it_is_larger_than_it_is(api: httpx.Client) -> None:
    response = api.post("/api/books", json=build_book(), headers={"Content-Length": str(2**63)})
    assert response.status_code == 413

"""What caches may do: they ask again for all responses of the API, and shared ones store nothing that a credential gets
(RFC 9111, 3.5, 5.2.2.4 and 5.2.2.7).
"""

from typing import Any

import httpx
import pytest
from django.db import OperationalError
from pytest_django import Settings

from books.api.views import BookViewSet
from library_site.http.caching import set_caching
from library_site.rate_limit.counters import build_counter
from oauth.throttling import CallerThrottle
from tests.support.books import build_book
from tests.support.credentials import create_token_header
from tests.support.failures import break_database
from tests.support.oauth_flows import create_key_header, create_librarian

VARY = ["Accept", "Authorization", "X-API-Key"]
STATUSES = {
    "/api/books": 200,
    "/api/v2/books": 200,
    "/api/books/99999999": 404,
    "/api/v2/books/99999999": 404,
    "/api/books/first": 422,
    "/api/v2/books/first": 422,
    "/api/books?limit=0": 422,
    "/api/v2/books?shelf=1": 400,
    "/api/books?version=9": 400,
    "/api/nothing": 404,
    "/api/v2/nothing": 404,
    "/api/v2/books/bulk": 405,
}


def get_caching(response: httpx.Response) -> tuple[list[str], list[str]]:
    vary = response.headers.get("Vary", "").split(",")
    return response.headers.get_list("Cache-Control"), [name.strip() for name in vary]


@pytest.mark.parametrize("create_header", [None, create_token_header, create_key_header])
def test_caches_ask_again_for_every_response_of_the_api(api: httpx.Client, create_header: Any) -> None:
    credential = create_header(create_librarian()) if create_header else {}
    expected = (["private, no-cache" if credential else "no-cache"], VARY)
    for address, status in STATUSES.items():
        for method in ("GET", "HEAD"):
            response = api.request(method, address, headers=credential)
            assert (response.status_code, *get_caching(response)) == (status, *expected), address


@pytest.mark.parametrize("home", ["/api", "/api/v2"])
def test_caches_ask_again_for_a_book(api: httpx.Client, home: str) -> None:
    created = api.post(f"{home}/books", json=build_book())
    address = f"{home}/books/{created.json()['id']}"
    responses = [created, api.put(address, json={**build_book(), "genre": "Essay"})]
    for method in ("GET", "HEAD"):
        responses += [api.request(method, address, headers=tag) for tag in ({}, {"If-None-Match": "*"})]
    assert [response.status_code for response in responses] == [201, 200, 200, 304, 200, 304]
    assert [get_caching(response) for response in responses] == [(["no-cache"], VARY)] * len(responses)


def test_what_is_refused_before_the_action_is_asked_for_again_too(
    api: httpx.Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses = {413: api.put("/api/books/1", content=b" " * (1024 * 1024 + 1))}
    responses[400] = api.get("/api/books", headers={"Host": "evil.example"})
    with break_database(OperationalError("away")):
        responses[503] = api.get("/api/books")
    settings.API_RATE_LIMIT = (1, 60)
    monkeypatch.setattr(BookViewSet, "throttle_classes", [CallerThrottle])
    build_counter.cache_clear()
    _, responses[429] = api.get("/api/books"), api.get("/api/books")
    settings.LIBRARY_ACCESS = "protected"
    responses[401] = api.get("/api/books")
    for status, response in responses.items():
        assert (response.status_code, *get_caching(response)) == (status, ["no-cache"], VARY)


def test_a_refused_credential_is_private(api: httpx.Client) -> None:
    response = api.get("/api/books", headers={"Authorization": "Bearer x", "X-API-Key": "y"})
    assert (response.status_code, *get_caching(response)) == (401, ["private, no-cache"], VARY)


def test_a_response_to_a_credential_is_private_elsewhere_too(api: httpx.Client) -> None:
    assert get_caching(api.get("/", headers={"X-API-Key": "x"})) == (["private"], ["X-API-Key"])
    assert get_caching(api.get("/")) == ([], [""])


def test_the_documents_are_asked_for_again(api: httpx.Client) -> None:
    """After an upgrade they are others."""
    for address in ("/openapi.json", "/openapi/v1.json", "/openapi/v2.json"):
        assert api.get(address).headers["Cache-Control"] == "no-cache"


def test_a_stricter_rule_of_the_response_stays(api: httpx.Client) -> None:
    response = api.post("/oauth/token", headers={"Authorization": "Basic x"})
    assert response.headers.get_list("Cache-Control") == ["no-store"]
    for environ in ({}, {"HTTP_X_API_KEY": "x"}):
        headers = {"Cache-Control": "no-store"}
        set_caching(headers, environ, is_api=True)
        assert headers["Cache-Control"] == "no-store"

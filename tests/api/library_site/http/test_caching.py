"""What caches may do: they ask again for what has an ETag, and shared ones store nothing that a credential gets
(RFC 9111, 3.5, 5.2.2.4 and 5.2.2.7).
"""

from typing import Any

import httpx
import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from library_site.http.middleware import require_revalidation
from tests.support.books import build_book
from tests.support.credentials import create_token_header
from tests.support.oauth_flows import create_key_header, create_librarian

ADDRESSES = ["/api/books", "/api/v2/books", "/api/books/99999999", "/api/v2/events", "/api/v2/nothing"]


def get_vary(response: httpx.Response) -> list[str]:
    return [name.strip() for name in response.headers.get("Vary", "").split(",")]


@pytest.mark.parametrize(
    ("create_header", "name"), [(create_token_header, "Authorization"), (create_key_header, "X-API-Key")]
)
def test_only_a_response_to_a_credential_is_private(api: httpx.Client, create_header: Any, name: str) -> None:
    credential = create_header(create_librarian())
    for address in ADDRESSES:
        private, public = api.get(address, headers=credential), api.get(address)
        expected = ["private, no-cache" if "ETag" in private.headers else "private"]
        assert (private.headers.get_list("Cache-Control"), get_vary(private)) == (expected, ["Accept", name]), address
        assert public.headers.get("Cache-Control") == ("no-cache" if "ETag" in public.headers else None)
        assert get_vary(public) == ["Accept"]


def test_a_refused_credential_is_private(api: httpx.Client) -> None:
    response = api.get("/api/books", headers={"Authorization": "Bearer x", "X-API-Key": "y"})
    assert (response.status_code, response.headers["Cache-Control"]) == (401, "private")
    assert get_vary(response) == ["Accept", "Authorization", "X-API-Key"]


def test_a_stricter_rule_of_the_response_stays(api: httpx.Client) -> None:
    response = api.post("/oauth/token", headers={"Authorization": "Basic x"})
    assert response.headers.get_list("Cache-Control") == ["no-store"]


@pytest.mark.parametrize(("home", "private"), [("/api", False), ("/api/v2", True)])
def test_caches_ask_again_for_what_has_an_etag(api: httpx.Client, home: str, private: bool) -> None:
    key = create_key_header(create_librarian()) if private else {}
    created = api.post(f"{home}/books", json=build_book(), headers={**key, "Idempotency-Key": "caching"})
    address = f"{home}/books/{created.json()['id']}"
    responses = [created, api.put(address, json={**build_book(), "genre": "Essay"}, headers=key)]
    # The compiled path answers GET, Django HEAD.
    for method in ("GET", "HEAD"):
        responses += [api.request(method, address, headers={**key, **tag}) for tag in ({}, {"If-None-Match": "*"})]
    expected = ["private, no-cache" if private else "no-cache"]
    assert all("ETag" in response.headers for response in responses)
    assert [response.headers.get_list("Cache-Control") for response in responses] == [expected] * len(responses)


def test_an_etag_gives_way_to_a_stricter_rule(rf: RequestFactory) -> None:
    response = HttpResponse(headers={"ETag": '"1"', "Cache-Control": "no-store"})
    assert require_revalidation(lambda _: response)(rf.get("/"))["Cache-Control"] == "no-store"

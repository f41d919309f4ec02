"""Pages of which origins may read the responses of the library (CORS_ALLOWED_ORIGINS)."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.applications import open_client
from tests.support.settings import override_by

ORIGINS = ["https://shop.example", "http://localhost:5173"]
SHARED_ADDRESSES = [
    "/api/books", "/api/books/1", "/api/v2/books", "/api/v2/nothing", "/oauth/token", "/oauth/token/",
    "/oauth/refresh", "/oauth/resource", "/oauth/revoke", "/oauth/revoke/", "/openapi.json", "/openapi/v2.json",
    "/.well-known/oauth-authorization-server", "/.well-known/jwks.json", "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/api",
]  # fmt: skip
OTHER_ADDRESSES = [
    "/", "/docs", "/openapi.html", "/oauth/authorize", "/oauth/introspect", "/oauth/tokens", "/accounts/login",
    "/admin/login/", "/static/oauth/token",
]  # fmt: skip


@pytest.fixture
def cors_client(api: httpx.Client) -> Iterator[httpx.Client]:
    """A client of a library that allows two origins and protects all books."""
    variables = {"CORS_ALLOWED_ORIGINS": ", ".join(ORIGINS), "LIBRARY_ACCESS": "protected"}
    with override_by(variables), open_client() as client:
        yield client


def send_preflight(client: httpx.Client, address: str, origin: str, method: str = "POST") -> httpx.Response:
    """Sends the preflight request of a browser."""
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization, content-type",
    }
    return client.options(address, headers=headers)


def get_cors_headers(response: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.startswith("access-control-")}


def split_list(text: str) -> set[str]:
    return {word.strip().lower() for word in text.split(",")}


def test_no_origin_is_allowed_by_default(api: httpx.Client) -> None:
    for address in SHARED_ADDRESSES + OTHER_ADDRESSES:
        assert get_cors_headers(api.get(address, headers={"Origin": ORIGINS[0]})) == {}
        assert get_cors_headers(send_preflight(api, address, ORIGINS[0])) == {}


def test_an_allowed_origin_may_send_and_read(cors_client: httpx.Client) -> None:
    """The preflight has no credential: only the request after it has one."""
    for number, address in enumerate(SHARED_ADDRESSES):
        origin = ORIGINS[number % 2]
        preflight = send_preflight(cors_client, address, origin)
        assert preflight.status_code == 200
        assert get_cors_headers(preflight)["access-control-allow-origin"] == origin, address
        assert "access-control-allow-credentials" not in get_cors_headers(preflight)
        response = cors_client.get(address, headers={"Origin": origin})
        assert get_cors_headers(response)["access-control-allow-origin"] == origin, address
        assert "origin" in split_list(response.headers["Vary"])


def test_other_addresses_are_for_no_other_origin(cors_client: httpx.Client) -> None:
    for address in OTHER_ADDRESSES:
        assert get_cors_headers(send_preflight(cors_client, address, ORIGINS[0])) == {}, address
        assert get_cors_headers(cors_client.get(address, headers={"Origin": ORIGINS[0]})) == {}, address


def test_no_other_origin_is_allowed(cors_client: httpx.Client) -> None:
    for origin in (
        "https://shop.example.evil.example",
        "https://evil-shop.example",
        "http://shop.example",
        "https://shop.example:8443",
        "https://sub.shop.example",
        "null",
        "*",
        "",
    ):
        for address in ("/api/books", "/oauth/token"):
            preflight = send_preflight(cors_client, address, origin)
            response = cors_client.get(address, headers={"Origin": origin})
            for headers in (get_cors_headers(preflight), get_cors_headers(response)):
                assert "access-control-allow-origin" not in headers, (origin, address)


def test_a_page_may_send_and_read_all_headers_of_the_library(cors_client: httpx.Client) -> None:
    preflight = get_cors_headers(send_preflight(cors_client, "/api/v2/books", ORIGINS[0], "PATCH"))
    response = get_cors_headers(cors_client.get("/api/v2/books", headers={"Origin": ORIGINS[0]}))
    sent = (
        "authorization, content-type, x-api-key, if-match, if-none-match, idempotency-key, traceparent, tracestate,"
        " baggage"
    )
    read = (
        "etag, idempotent-replayed, link, location, ratelimit, ratelimit-policy, retry-after, www-authenticate,"
        " x-request-id"
    )
    assert split_list("get, post, put, patch, delete") <= split_list(preflight["access-control-allow-methods"])
    assert split_list(sent) <= split_list(preflight["access-control-allow-headers"])
    assert split_list(response["access-control-expose-headers"]) == split_list(read)


def test_refusals_are_readable_too(cors_client: httpx.Client) -> None:
    origin = {"Origin": ORIGINS[0]}
    responses = [
        cors_client.get("/api/books", headers=origin),
        cors_client.get("/api/books?version=9", headers=origin),
        cors_client.get("/api/v2/books", headers={**origin, "Authorization": "Bearer nonsense"}),
        cors_client.put("/api/books", headers=origin),
        cors_client.post("/oauth/token", headers=origin),
        cors_client.post("/oauth/token", headers=origin, data={"grant_type": "refresh_token", "refresh_token": "x"}),
    ]
    assert [response.status_code for response in responses] == [401, 400, 401, 405, 400, 401]
    assert {get_cors_headers(response).get("access-control-allow-origin") for response in responses} == {ORIGINS[0]}

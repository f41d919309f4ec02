"""Which pages of elsewhere may read what the library answers (CORS_ALLOWED_ORIGINS)."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.serving import serving

pytestmark = pytest.mark.once

NAMED = ["https://shop.example", "http://localhost:5173"]
OPEN = [
    "/api/books",
    "/api/books/1",
    "/api/v2/books",
    "/api/v2/nothing",
    "/oauth/token",
    "/oauth/token/",
    "/oauth/refresh",
    "/.well-known/oauth-authorization-server",
    "/.well-known/jwks.json",
]
CLOSED = [
    "/",
    "/docs",
    "/openapi.json",
    "/oauth/authorize",
    "/oauth/resource",
    "/oauth/revoke",
    "/oauth/introspect",
    "/oauth/tokens",
    "/accounts/login",
    "/admin/login/",
    "/static/oauth/token",
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a library that names two origins, and protects all books."""
    folder = tmp_path_factory.mktemp("cors")
    with (
        serving(
            folder, CORS_ALLOWED_ORIGINS=", ".join(NAMED), LIBRARY_ACCESS="protected", WEB_CONCURRENCY="1"
        ) as service,
        service.client() as client,
    ):
        yield client


def asked(client: httpx.Client, address: str, origin: str, method: str = "POST") -> httpx.Response:
    """A browser's question before it sends what forms cannot."""
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization, content-type",
    }
    return client.options(address, headers=headers)


def told(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


def words(text: str) -> set[str]:
    return {word.strip().lower() for word in text.split(",")}


def test_nobody_is_named_by_default(api: httpx.Client) -> None:
    for address in OPEN + CLOSED:
        assert told(api.get(address, headers={"Origin": NAMED[0]})) == {}
        assert told(asked(api, address, NAMED[0])) == {}


@pytest.mark.parametrize("origin", NAMED)
@pytest.mark.parametrize("address", OPEN)
def test_a_named_origin_may_ask_and_read(shared: httpx.Client, address: str, origin: str) -> None:
    """Without a credential: it is the request after it that brings one."""
    before = asked(shared, address, origin)
    assert before.status_code == 200
    assert told(before)["access-control-allow-origin"] == origin
    answer = shared.get(address, headers={"Origin": origin})
    assert told(answer)["access-control-allow-origin"] == origin
    assert "origin" in words(answer.headers["Vary"])


@pytest.mark.parametrize("address", CLOSED)
def test_the_rest_is_for_nobody_elsewhere(shared: httpx.Client, address: str) -> None:
    assert told(asked(shared, address, NAMED[0])) == {}
    assert told(shared.get(address, headers={"Origin": NAMED[0]})) == {}


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "https://shop.example.evil.example",
        "https://evil-shop.example",
        "http://shop.example",
        "https://shop.example:8443",
        "http://localhost:5174",
        "https://sub.shop.example",
        "null",
        "*",
        "",
    ],
)
def test_no_other_origin_is_let_in(shared: httpx.Client, origin: str) -> None:
    for address in OPEN:
        assert "access-control-allow-origin" not in told(asked(shared, address, origin))
        assert "access-control-allow-origin" not in told(shared.get(address, headers={"Origin": origin}))


def test_a_page_may_send_and_read_what_the_library_speaks_of(shared: httpx.Client) -> None:
    before = told(asked(shared, "/api/v2/books", NAMED[0], "PATCH"))
    answer = told(shared.get("/api/v2/books", headers={"Origin": NAMED[0]}))
    assert {"get", "post", "put", "patch", "delete"} <= words(before["access-control-allow-methods"])
    assert {"authorization", "content-type", "x-api-key", "if-match", "if-none-match", "idempotency-key"} <= words(
        before["access-control-allow-headers"]
    )
    assert words(answer["access-control-expose-headers"]) == {
        "etag",
        "idempotent-replayed",
        "link",
        "location",
        "ratelimit",
        "ratelimit-policy",
        "retry-after",
        "www-authenticate",
        "x-request-id",
    }


def test_no_page_may_use_a_persons_session(shared: httpx.Client) -> None:
    for address in OPEN:
        assert "access-control-allow-credentials" not in told(asked(shared, address, NAMED[0]))


def test_refusals_are_readable_too(shared: httpx.Client) -> None:
    origin = {"Origin": NAMED[0]}
    answers = [
        shared.get("/api/books", headers=origin),
        shared.get("/api/books?version=9", headers=origin),
        shared.get("/api/v2/books", headers={**origin, "Authorization": "Bearer nonsense"}),
        shared.put("/api/books", headers=origin),
        shared.post("/oauth/token", headers=origin),
        shared.post("/oauth/token", headers=origin, data={"grant_type": "refresh_token", "refresh_token": "x"}),
    ]
    assert [answer.status_code for answer in answers] == [401, 400, 401, 405, 400, 401]
    assert {told(answer).get("access-control-allow-origin") for answer in answers} == {NAMED[0]}

"""Who may read and write books (LIBRARY_ACCESS), and how each version answers a refusal."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import OperationalError, connection
from django.db.models.sql.compiler import SQLCompiler
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from books.api.views import BookViewSet
from books.models import Book
from library_site.rate_limit.counters import make_counter
from oauth import api_keys
from oauth.authentication import build_challenge
from oauth.models import APIKey
from oauth.scopes import get_user_scopes, parse_scopes
from oauth.throttling import CallerThrottle
from tests.support.books import build_book
from tests.support.forged_tokens import build_claims, forge_token
from tests.support.oauth_flows import (
    build_bearer_header,
    create_confidential_app,
    create_librarian,
    create_reader,
    deactivate,
    deactivate_without_signal,
    obtain_tokens,
)

CHALLENGE = build_challenge()
INVALID = build_challenge(error="invalid_token")
VERSIONS = ["/api/books", "/api/v2/books"]
POLICIES = ["open", "protect-writes", "protected"]
NO_CREDENTIAL = "Authentication credentials were not provided."
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture(params=VERSIONS)
def books(request: pytest.FixtureRequest) -> str:
    address: str = request.param
    return address


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest, settings: Settings) -> str:
    setting: str = request.param
    settings.LIBRARY_ACCESS = setting
    return setting


@pytest.fixture
def user(db: None) -> User:
    return create_librarian()


def create_token_header(user: User, scopes: str = "read write", **changes: Any) -> dict[str, str]:
    return build_bearer_header(forge_token(build_claims(user.pk, scope=scopes, **changes)))


def create_key_header(user: User, scopes: str = "read write", **fields: Any) -> dict[str, str]:
    _, text = api_keys.create_key(user, "a program", parse_scopes(scopes), timezone.now(), **fields)
    return {"X-API-Key": text}


def build_error_body(books: str, code: str, message: str, response: httpx.Response) -> dict[str, Any]:
    """Returns the body of this refusal in the version."""
    if books == "/api/books":
        return {"detail": message}
    return {"error": {"code": code, "message": message, "requestId": response.headers["X-Request-ID"]}}


def check_unauthenticated(books: str, response: httpx.Response, message: str, challenge: str) -> None:
    """Checks that the response is a 401 in the structure of the version."""
    assert response.status_code == 401
    assert response.json() == build_error_body(books, "UNAUTHENTICATED", message, response)
    assert response.headers["WWW-Authenticate"] == challenge


def read_books(client: httpx.Client, books: str, headers: dict[str, str] | None = None) -> int:
    return client.get(books, headers=headers).status_code


def create_book(client: httpx.Client, books: str, headers: dict[str, str] | None = None) -> int:
    return client.post(books, json=build_book(), headers=headers).status_code


@pytest.mark.parametrize(
    ("setting", "statuses"), [("open", (200, 201)), ("protect-writes", (200, 401)), ("protected", (401, 401))]
)
def test_each_policy_opens_reads_or_writes_without_a_credential(
    api: httpx.Client, settings: Settings, books: str, setting: str, statuses: tuple[int, int]
) -> None:
    settings.LIBRARY_ACCESS = setting
    assert (read_books(api, books), create_book(api, books)) == statuses


def test_a_request_without_a_credential_is_answered_with_a_challenge(
    api: httpx.Client, settings: Settings, books: str
) -> None:
    settings.LIBRARY_ACCESS = "protected"
    check_unauthenticated(books, api.get(books), NO_CREDENTIAL, CHALLENGE)
    check_unauthenticated(books, api.post(books, json=build_book()), NO_CREDENTIAL, CHALLENGE)
    assert not Book.objects.exists()


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    ("setting", "open_methods"), [("protect-writes", ["GET", "HEAD", "OPTIONS"]), ("protected", [])]
)
def test_every_method_that_does_not_read_is_a_write(
    api: httpx.Client, settings: Settings, method: str, setting: str, open_methods: list[str]
) -> None:
    settings.LIBRARY_ACCESS = setting
    response = api.request(method, "/api/v2/books/1")
    assert (response.status_code == 401) is (method not in open_methods)


@pytest.mark.parametrize("address", ["/api/v2/books/bulk", "/api/v2/books/bulk?dry_run=true"])
def test_bulk_is_a_write(api: httpx.Client, settings: Settings, user: User, address: str) -> None:
    settings.LIBRARY_ACCESS = "protect-writes"
    body = {"operations": [{"op": "create", "book": build_book()}]}
    headers = [{}, create_token_header(user, "read"), create_token_header(user, "write")]
    assert [api.post(address, json=body, headers=header).status_code for header in headers] == [401, 403, 200]


@pytest.mark.parametrize("address", ["/", "/docs", "/openapi.json", "/.well-known/jwks.json"])
def test_addresses_outside_the_api_need_no_credential(api: httpx.Client, settings: Settings, address: str) -> None:
    settings.LIBRARY_ACCESS = "protected"
    assert api.get(address).status_code == 200


@pytest.mark.parametrize("credential", [create_token_header, create_key_header])
def test_a_credential_opens_what_its_scopes_name(
    api: httpx.Client, policy: str, books: str, user: User, credential: Any
) -> None:
    statuses = {
        scopes: (read_books(api, books, credential(user, scopes)), create_book(api, books, credential(user, scopes)))
        for scopes in ("read", "write", "read write")
    }
    assert statuses == {"read": (200, 403), "write": (403, 201), "read write": (200, 201)}


@pytest.mark.parametrize("credential", [create_token_header, create_key_header])
def test_a_missing_scope_is_named(api: httpx.Client, policy: str, books: str, user: User, credential: Any) -> None:
    response = api.post(books, json=build_book(), headers=credential(user, "read"))
    assert response.status_code == 403
    assert response.json() == build_error_body(books, "FORBIDDEN", "The credential lacks the scope write", response)
    assert response.headers["WWW-Authenticate"] == build_challenge(error="insufficient_scope", scope="write")


def test_a_token_of_the_whole_flow_opens_the_library(api: httpx.Client, settings: Settings, books: str) -> None:
    settings.LIBRARY_ACCESS = "protected"
    tokens = obtain_tokens(api, create_librarian(), create_confidential_app())
    assert create_book(api, books, build_bearer_header(tokens["access_token"])) == 201


def test_a_session_is_no_credential(api: httpx.Client, settings: Settings, books: str, user: User) -> None:
    obtain_tokens(api, user, create_confidential_app())
    settings.LIBRARY_ACCESS = "protected"
    assert api.cookies
    assert read_books(api, books) == 401


INVALID_CREDENTIALS = {
    "nonsense": {"Authorization": "Bearer nonsense"},
    "nothing": {"Authorization": "Bearer"},
    "blank": {"Authorization": ""},
    "basic": {"Authorization": "Basic cmVhZGVyOnJlYWRlcg=="},
    "two": {"Authorization": "Bearer a, Bearer b"},
    "huge": {"Authorization": "Bearer " + "x" * 60_000},
    "key": {"X-API-Key": "nonsense"},
    "blank key": {"X-API-Key": ""},
    "unknown key": {"X-API-Key": f"lib_{'0' * 12}_{'x' * 43}"},
    "key with NUL": {"X-API-Key": f"lib_{'0' * 12}_{'x' * 42}\0"},
    "huge key": {"X-API-Key": "lib_" + "0" * 60_000},
}


@pytest.mark.parametrize("headers", INVALID_CREDENTIALS.values(), ids=INVALID_CREDENTIALS)
def test_an_invalid_credential_is_refused_even_where_none_is_needed(
    api: httpx.Client, policy: str, books: str, headers: dict[str, str]
) -> None:
    response = api.get(books, headers=headers)
    check_unauthenticated(books, response, read_message(response), INVALID)


def read_message(response: httpx.Response) -> str:
    """Returns the message of the error in either version."""
    body = response.json()
    message: str = body["detail"] if "detail" in body else body["error"]["message"]
    return message


def test_each_refusal_says_what_is_wrong(api: httpx.Client, books: str, user: User) -> None:
    refusals = {
        "Authorization takes a Bearer token": {"Authorization": "Basic eDp5"},
        "The access token is not valid": {"Authorization": "Bearer nonsense"},
        "The access token has expired": create_token_header(user, iat=1, exp=3601),
        "The API key is not valid": {"X-API-Key": "nonsense"},
        "This is the form of an API key, which belongs into the header X-API-Key": {
            "Authorization": f"Bearer {create_key_header(user)['X-API-Key']}"
        },
        "Send one credential, a Bearer token or an API key": {**create_token_header(user), **create_key_header(user)},
    }
    assert [read_message(api.get(books, headers=headers)) for headers in refusals.values()] == list(refusals)


@pytest.mark.parametrize("name", ["access_token", "token", "api_key", "X-API-Key", "apikey", "key"])
def test_a_credential_in_the_query_is_not_read(api: httpx.Client, settings: Settings, user: User, name: str) -> None:
    settings.LIBRARY_ACCESS = "protected"
    for secret in (forge_token(build_claims(user.pk)), create_key_header(user)["X-API-Key"]):
        assert api.get("/api/books", params={name: secret}).status_code == 401


@pytest.mark.parametrize("valid_credential", ["Bearer", "key", "both", "neither"])
def test_two_credentials_at_once_are_refused(api: httpx.Client, books: str, user: User, valid_credential: str) -> None:
    headers = {"Authorization": "Bearer nonsense", "X-API-Key": "nonsense"}
    if valid_credential in ("Bearer", "both"):
        headers |= create_token_header(user)
    if valid_credential in ("key", "both"):
        headers |= create_key_header(user)
    check_unauthenticated(
        books, api.get(books, headers=headers), "Send one credential, a Bearer token or an API key", INVALID
    )


def revoke_key(user: User) -> None:
    api_keys.revoke_keys(APIKey.objects.filter(owner=user), timezone.now())


def expire_key(user: User) -> None:
    APIKey.objects.filter(owner=user).update(expires_at=timezone.now())


@pytest.mark.parametrize("change", [revoke_key, expire_key, deactivate, deactivate_without_signal, User.delete])
def test_an_ended_key_opens_nothing(api: httpx.Client, policy: str, books: str, user: User, change: Any) -> None:
    headers = create_key_header(user, expires_at=timezone.now() + timedelta(hours=1))
    assert read_books(api, books, headers) == 200
    change(user)
    check_unauthenticated(books, api.get(books, headers=headers), "The API key is not valid", INVALID)


def test_a_key_loses_what_its_owner_loses(api: httpx.Client, books: str, user: User) -> None:
    headers, write_only = create_key_header(user), create_key_header(user, "write")
    user.groups.clear()
    assert (read_books(api, books, headers), create_book(api, books, headers)) == (200, 403)
    assert create_book(api, books, write_only) == 403


def test_a_key_never_has_more_than_its_owner(api: httpx.Client, books: str) -> None:
    assert create_book(api, books, create_key_header(create_reader(), "read write")) == 403


def grant(user: User, *permissions: str) -> None:
    for permission in permissions:
        app, codename = permission.split(".")
        user.user_permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))


@pytest.mark.parametrize(
    ("fields", "permissions", "scopes"),
    [
        ({}, [], {"read"}),
        ({}, ["books.change_book"], {"read", "write"}),
        ({}, ["webhooks.change_endpoint"], {"read", "webhooks"}),
        ({}, ["books.change_book", "books.view_book", "webhooks.change_endpoint"], {"read", "write", "webhooks"}),
        ({"is_superuser": True}, [], {"read", "write", "webhooks"}),
    ],
)
def test_a_key_has_the_scopes_for_which_its_owner_has_the_permission(
    db: None, fields: dict[str, Any], permissions: list[str], scopes: set[str]
) -> None:
    owner = User.objects.create_user("owner", **fields)
    grant(owner, *permissions)
    _, text = api_keys.create_key(owner, "a program", parse_scopes("read write webhooks"), NOW)
    assert api_keys.find_key(text, NOW).scopes == scopes
    assert get_user_scopes(owner) == scopes


@pytest.mark.parametrize("requested", [set(), {"read"}, {"write"}, {"webhooks"}, {"read", "write"}])
def test_a_key_is_searched_for_the_requested_scopes_alone(user: User, requested: set[str]) -> None:
    _, text = api_keys.create_key(user, "a program", parse_scopes("read write webhooks"), NOW)
    assert api_keys.find_key(text, NOW, frozenset(requested)).scopes == requested & {"read", "write"}


def test_to_read_no_permission_is_looked_up(api: httpx.Client, books: str, user: User) -> None:
    headers = create_key_header(user)
    with CaptureQueriesContext(connection) as queries:
        assert read_books(api, books, headers) == 200
    assert not [query["sql"] for query in queries if "auth_permission" in query["sql"]]


def test_a_permission_by_group_and_by_user_is_one(user: User) -> None:
    grant(user, "books.change_book")
    _, text = api_keys.create_key(user, "a program", parse_scopes("read write webhooks"), NOW)
    assert api_keys.find_key(text, NOW).scopes == {"read", "write"}


def test_a_permission_of_the_same_name_in_another_app_opens_nothing(db: None) -> None:
    owner = create_reader("owner")
    kind = ContentType.objects.create(app_label="elsewhere", model="book")
    owner.user_permissions.add(Permission.objects.create(content_type=kind, codename="change_book", name="x"))
    _, text = api_keys.create_key(owner, "a program", parse_scopes("read write"), NOW)
    assert api_keys.find_key(text, NOW).scopes == {"read"}


def test_a_key_is_found_without_compiling_a_query(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """To compile it takes fifty times as long as to execute it."""
    _, text = api_keys.create_key(user, "a program", parse_scopes("read"), NOW)
    first = api_keys.find_key(text, NOW)
    monkeypatch.delattr(SQLCompiler, "as_sql")
    assert api_keys.find_key(text, NOW) == first


@pytest.mark.parametrize("change", [lambda text: text[:-1], lambda text: text + "x", lambda text: text[:-4] + "xxxx"])
def test_a_key_that_is_almost_correct_opens_nothing(api: httpx.Client, user: User, change: Any) -> None:
    wrong = change(create_key_header(user)["X-API-Key"])
    assert api.get("/api/books", headers={"X-API-Key": wrong}).status_code == 401


def test_a_key_of_another_prefix_opens_nothing(api: httpx.Client, user: User) -> None:
    first, second = create_key_header(user)["X-API-Key"], create_key_header(user)["X-API-Key"]
    assert api.get("/api/books", headers={"X-API-Key": first[:17] + second[17:]}).status_code == 401


def test_the_key_itself_is_not_stored(user: User) -> None:
    text = create_key_header(user)["X-API-Key"]
    [stored] = APIKey.objects.values()
    assert text not in map(str, stored.values())
    assert text[17:] not in " ".join(map(str, stored.values()))


def test_the_last_use_is_recorded_once_a_minute(user: User) -> None:
    _, text = api_keys.create_key(user, "a program", parse_scopes("read"), NOW)
    recorded: list[datetime | None] = []
    for seconds in (0, 1, 59, 61, 62):
        now = NOW + timedelta(seconds=seconds)
        api_keys.record_use(api_keys.find_key(text, now), now)
        recorded += APIKey.objects.values_list("last_used_at", flat=True)
    assert recorded == [NOW, NOW, NOW, NOW + timedelta(seconds=61), NOW + timedelta(seconds=61)]


def test_a_use_is_due_when_more_than_a_minute_is_over(user: User) -> None:
    """SQLite compares times as texts, so both must be written alike."""
    _, text = api_keys.create_key(user, "a program", parse_scopes("read"), NOW)
    api_keys.record_use(api_keys.find_key(text, NOW), NOW)
    times = [NOW + timedelta(minutes=1), NOW + timedelta(minutes=1, microseconds=1)]
    assert [api_keys.find_key(text, time).is_use_due for time in times] == [False, True]


def test_a_refused_key_was_not_used(api: httpx.Client, user: User) -> None:
    text = create_key_header(user)["X-API-Key"]
    api.get("/api/books", headers={"X-API-Key": text[:-4] + "xxxx"})
    assert APIKey.objects.values_list("last_used_at", flat=True).get() is None


def test_a_token_costs_no_query(
    api: httpx.Client, books: str, user: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    headers = create_token_header(user)
    # The first request reads the list of revocations, which is kept for some seconds.
    api.get(books, headers=headers)
    with django_assert_num_queries(1):
        api.get(books, headers=headers)
    with django_assert_num_queries(1):
        api.get(books)


def test_reading_the_revocations_costs_two_queries(
    api: httpx.Client, user: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    headers = create_token_header(user)
    with django_assert_num_queries(1 + 2):
        api.get("/api/books", headers=headers)


def test_an_invalid_token_costs_no_query(
    api: httpx.Client, user: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        api.get("/api/books", headers={"Authorization": "Bearer nonsense"})
        api.get("/api/books", headers=create_token_header(user, iat=1, exp=3601))
        api.get("/api/books", headers={"X-API-Key": "nonsense"})


def test_a_key_costs_one_query_and_another_once_a_minute(
    api: httpx.Client, books: str, user: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    headers = create_key_header(user)
    with django_assert_num_queries(1 + 1 + 1):
        api.get(books, headers=headers)
    with django_assert_num_queries(1 + 1):
        api.get(books, headers=headers)


@pytest.mark.parametrize(
    ("method", "address", "content", "media_type", "status"),
    [
        ("TRACE", "/api/books", b"", "", 405),
        ("DELETE", "/api/books", b"", "", 405),
        ("PATCH", "/api/books/1?version=9", b"{}", "text/plain", 400),
        ("POST", "/api/v9/books", b"{}", "text/plain", 400),
        ("POST", "/api/books", b" " * 1048577, "text/plain", 401),
        ("PUT", "/api/v2/books/1", b"{", "text/plain", 401),
        ("GET", "/api/v2/books?nonsense=1", b"", "", 401),
        ("GET", "/api/books/99999999", b"", "", 401),
        ("GET", "/api/books/abc", b"", "", 401),
    ],
)
@pytest.mark.parametrize("headers", [{}, INVALID_CREDENTIALS["nonsense"], INVALID_CREDENTIALS["key"]])
def test_method_and_version_are_checked_before_the_credential_and_the_rest_after(
    api: httpx.Client,
    settings: Settings,
    headers: dict[str, str],
    method: str,
    address: str,
    content: bytes,
    media_type: str,
    status: int,
) -> None:
    settings.LIBRARY_ACCESS = "protected"
    response = api.request(method, address, content=content, headers={"Content-Type": media_type, **headers})
    assert response.status_code == status


@pytest.mark.parametrize(
    ("method", "address", "content", "media_type", "without_scope", "with_scope"),
    [
        ("DELETE", "/api/books", b"", "", 405, 405),
        ("POST", "/api/books?version=9", b"{}", "text/plain", 400, 400),
        ("POST", "/api/books", b" " * 1048577, "text/plain", 403, 413),
        ("POST", "/api/books", b"{}", "text/plain", 403, 415),
        ("POST", "/api/books", b"{}", "application/json", 403, 422),
        ("PUT", "/api/books/99999999", b"{}", "application/json", 403, 404),
        ("PUT", "/api/v2/books/99999999", b"{", "application/json", 403, 404),
        ("DELETE", "/api/v2/books/abc", b"", "", 403, 422),
    ],
)
def test_scopes_are_checked_before_the_content_of_a_request(
    api: httpx.Client,
    user: User,
    method: str,
    address: str,
    content: bytes,
    media_type: str,
    without_scope: int,
    with_scope: int,
) -> None:
    responses = [
        api.request(
            method, address, content=content, headers={"Content-Type": media_type, **create_token_header(user, scopes)}
        )
        for scopes in ("read", "write")
    ]
    assert [response.status_code for response in responses] == [without_scope, with_scope]


def test_the_limit_is_checked_after_the_scope(
    api: httpx.Client, settings: Settings, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.API_RATE_LIMIT = (1, 60)
    settings.LIBRARY_ACCESS = "protected"
    monkeypatch.setattr(BookViewSet, "throttle_classes", [CallerThrottle])
    make_counter.cache_clear()
    headers = create_token_header(user, "read")
    wrong = {"Content-Type": "text/plain", **create_token_header(user)}
    assert [read_books(api, "/api/books", headers) for _ in range(2)] == [200, 429]
    assert create_book(api, "/api/books", headers) == 403
    assert api.post("/api/books", content=b"{}", headers=wrong).status_code == 429


def test_tokens_of_one_app_for_one_person_are_one_caller(
    api: httpx.Client, user: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.API_RATE_LIMIT = (1, 60)
    monkeypatch.setattr(BookViewSet, "throttle_classes", [CallerThrottle])
    make_counter.cache_clear()
    other = create_reader("other")
    callers = [
        create_token_header(user),
        create_token_header(user),
        create_token_header(other),
        create_token_header(user, client_id="shelf"),
        create_key_header(user),
        create_key_header(user),
        {},
    ]
    assert [read_books(api, "/api/books", headers) for headers in callers] == [200, 429, 200, 200, 200, 200, 200]


def test_a_stored_response_belongs_to_one_credential(api: httpx.Client, user: User) -> None:
    """Each credential has its own Idempotency-Keys."""
    idempotency_header = {"Idempotency-Key": "the-same-key"}
    responses = [
        api.post("/api/v2/books", json=build_book(), headers={**idempotency_header, **headers})
        for headers in (
            create_token_header(user),
            create_token_header(create_reader("other"), "write"),
            create_key_header(user),
            {},
        )
    ]
    assert [response.status_code for response in responses] == [201, 201, 201, 201]


class UnavailableDatabase:
    """An execute wrapper that fails as a connection to a stopped database does."""

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:  # Django's hook
        raise OperationalError("connection refused")


@pytest.mark.parametrize("credential", [create_token_header, create_key_header])
def test_while_the_database_is_away_a_credential_is_answered_503(
    api: httpx.Client, policy: str, books: str, user: User, credential: Any
) -> None:
    headers = credential(user)
    with connection.execute_wrapper(UnavailableDatabase()):
        response = api.get(books, headers=headers)
    assert response.status_code == 503
    assert response.json() == build_error_body(
        books, "UNAVAILABLE", "The library is out of reach, try again later", response
    )


def test_while_the_database_is_away_requests_without_a_query_are_answered(
    api: httpx.Client, settings: Settings, books: str
) -> None:
    settings.LIBRARY_ACCESS = "protected"
    with connection.execute_wrapper(UnavailableDatabase()):
        assert read_books(api, books) == 401
        assert read_books(api, books, INVALID_CREDENTIALS["nonsense"]) == 401
        assert read_books(api, books, INVALID_CREDENTIALS["key"]) == 401
        assert api.get("/.well-known/jwks.json").status_code == 200


@pytest.mark.parametrize(("offset", "status"), [(0, 200), (1, 404), (10**20, 404)])
def test_a_book_that_its_reader_may_not_read_is_not_answered(
    api: httpx.Client, user: User, book: dict[str, Any], offset: int, status: int
) -> None:
    reader, listener = create_key_header(user, "read"), create_key_header(user, "webhooks")
    address = f"/api/books/{book['id'] + offset}"
    # From the second request on, Django answers only what is refused.
    statuses = [api.get(address, headers=headers).status_code for headers in (reader, reader, listener, listener)]
    assert statuses == [status, status, 403, 403]
    unknown = {"X-API-Key": f"{listener['X-API-Key'][:-1]}{'A' if listener['X-API-Key'][-1] != 'A' else 'B'}"}
    assert api.get(address, headers=unknown).status_code == 401

"""Who may read and write books (LIBRARY_ACCESS), and how each version answers a refusal."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from books.api.views import BookViewSet
from library_site.rate_limit.counters import build_counter
from oauth import api_keys
from oauth.credentials import build_challenge
from oauth.models import APIKey
from oauth.throttling import CallerThrottle
from tests.support.applications import open_client
from tests.support.books import build_book
from tests.support.credentials import create_token_header, expire_keys, revoke_keys
from tests.support.forged_tokens import build_claims, forge_token
from tests.support.oauth_flows import (
    create_key_header,
    create_reader,
    deactivate,
    deactivate_without_signal,
    sign_in,
)

CHALLENGE = build_challenge()
INVALID = build_challenge(error="invalid_token")
VERSIONS = ["/api/books", "/api/v2/books"]
NO_CREDENTIAL = "Authentication credentials were not provided."
OPERATIONS = "/api/v2/operations"
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture(params=VERSIONS)
def books(request: pytest.FixtureRequest) -> str:
    address: str = request.param
    return address


def check_unauthenticated(books: str, response: httpx.Response, message: str, challenge: str) -> None:
    """Checks that the response is a 401 in the structure of the version."""
    assert response.status_code == 401
    error = {"code": "UNAUTHENTICATED", "message": message, "requestId": response.headers["X-Request-ID"]}
    assert response.json() == ({"detail": message} if books == "/api/books" else {"error": error})
    assert response.headers["WWW-Authenticate"] == challenge


def read_books(client: httpx.Client, books: str, headers: dict[str, str] | None = None) -> int:
    return client.get(books, headers=headers).status_code


def create_book(client: httpx.Client, books: str, headers: dict[str, str] | None = None) -> int:
    return client.post(books, json=build_book(), headers=headers).status_code


@pytest.mark.parametrize(
    ("setting", "statuses"), [("open", (200, 201)), ("protect-writes", (200, 401)), ("protected", (401, 401))]
)
def test_each_policy_opens_reads_or_writes_without_a_credential_and_documents(
    api: httpx.Client, settings: Settings, books: str, setting: str, statuses: tuple[int, int]
) -> None:
    settings.LIBRARY_ACCESS = setting
    assert (read_books(api, books), create_book(api, books)) == statuses
    for address in ("/", "/docs", "/openapi.json", "/.well-known/jwks.json"):
        assert api.get(address).status_code == 200, address


@pytest.mark.parametrize(
    ("setting", "open_methods"), [("protect-writes", {"GET", "HEAD", "OPTIONS"}), ("protected", set[str]())]
)
def test_every_method_that_does_not_read_is_a_write(
    api: httpx.Client, settings: Settings, setting: str, open_methods: set[str]
) -> None:
    settings.LIBRARY_ACCESS = setting
    methods = ("GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE")
    assert {one for one in methods if api.request(one, "/api/v2/books/1").status_code != 401} == open_methods


def test_a_403_names_the_groups_that_the_user_lacks(api: httpx.Client, books: str) -> None:
    headers = create_key_header(create_reader(), "read")
    can_add, can_view = (
        "The user lacks the permission 'Can add book'",
        "The user lacks the permission 'Can view endpoint'",
    )
    scope = "The credential lacks the scope write"
    responses = {
        f"{can_add}, which the groups Head librarians, Librarians have": api.post(
            books, json=build_book(), headers=headers
        ),
        f"{can_view}, which the group Developers has": api.get("/api/v2/webhooks", headers=headers),
        f"{scope}. Its user needs one of the groups Head librarians, Librarians": api.get(OPERATIONS, headers=headers),
    }
    assert [response.status_code for response in responses.values()] == [403, 403, 403]
    assert [read_message(response) for response in responses.values()] == list(responses)
    challenges = [response.headers.get("WWW-Authenticate") for response in responses.values()]
    assert challenges == [None, None, build_challenge(error="insufficient_scope", scope="write")]
    Group.objects.all().delete()
    assert read_message(api.get("/api/v2/webhooks", headers=headers)) == can_view
    assert read_message(api.get(OPERATIONS, headers=headers)) == scope


def test_a_session_is_no_credential(api: httpx.Client, settings: Settings, books: str, librarian: User) -> None:
    sign_in(api, librarian)
    settings.LIBRARY_ACCESS = "protected"
    assert api.cookies
    assert read_books(api, books) == 401


INVALID_CREDENTIALS = {
    "nonsense": {"Authorization": "Bearer nonsense"},
    "nothing": {"Authorization": "Bearer"},
    "two": {"Authorization": "Bearer a, Bearer b"},
    "huge": {"Authorization": "Bearer " + "x" * 60_000},
    "key": {"X-API-Key": "nonsense"},
    "blank key": {"X-API-Key": ""},
    "unknown key": {"X-API-Key": f"lib_{'0' * 12}_{'x' * 43}"},
    "key with NUL": {"X-API-Key": f"lib_{'0' * 12}_{'x' * 42}\0"},
    "huge key": {"X-API-Key": "lib_" + "0" * 60_000},
}


def test_an_invalid_credential_is_refused_even_where_none_is_needed(api: httpx.Client, books: str) -> None:
    for headers in INVALID_CREDENTIALS.values():
        response = api.get(books, headers=headers)
        check_unauthenticated(books, response, read_message(response), INVALID)


def test_what_is_no_credential_of_the_library_is_passed_over(
    api: httpx.Client, settings: Settings, books: str, librarian: User
) -> None:
    """A proxy leaves the password that it asked for in the request, or an empty header."""
    key = create_key_header(librarian)
    for authorization in ("", "Basic eDp5", "Negotiate abc", "Bearerx y", "Digest a, Bearer b"):
        headers, settings.LIBRARY_ACCESS = {"Authorization": authorization}, "open"
        book = create_book(api, books, headers), create_book(api, books, {**headers, **key})
        assert (read_books(api, books, headers), *book) == (200, 201, 201), authorization
        settings.LIBRARY_ACCESS = "protected"
        check_unauthenticated(books, api.get(books, headers=headers), NO_CREDENTIAL, CHALLENGE)
        assert create_book(api, books, headers) == 401, authorization
        assert read_books(api, books, {**headers, **key}) == 200, authorization


def read_message(response: httpx.Response) -> str:
    """Returns the message of the error in either version."""
    body = response.json()
    message: str = body["detail"] if "detail" in body else body["error"]["message"]
    return message


def test_each_refusal_says_what_is_wrong(api: httpx.Client, books: str, librarian: User) -> None:
    refusals = {
        "The access token is not valid": {"Authorization": "Bearer nonsense"},
        "The access token has expired": create_token_header(librarian, iat=1, exp=3601),
        "The API key is not valid": {"X-API-Key": "nonsense"},
        "This is the form of an API key, which belongs into the header X-API-Key": {
            "Authorization": f"Bearer {create_key_header(librarian)['X-API-Key']}"
        },
        "Send one credential, a Bearer token or an API key": {
            **create_token_header(librarian),
            **create_key_header(librarian),
        },
    }
    assert [read_message(api.get(books, headers=headers)) for headers in refusals.values()] == list(refusals)


def test_a_credential_in_the_query_is_not_read(api: httpx.Client, settings: Settings, librarian: User) -> None:
    settings.LIBRARY_ACCESS = "protected"
    token, key = forge_token(build_claims(librarian.pk)), create_key_header(librarian)["X-API-Key"]
    for query in ({"access_token": token}, {"api_key": key}, {"X-API-Key": key}):
        assert api.get("/api/books", params=query).status_code == 401, query


def test_an_ended_key_opens_nothing(api: httpx.Client, books: str) -> None:
    for change in (revoke_keys, expire_keys, deactivate, deactivate_without_signal, User.delete):
        owner = create_reader(change.__name__)
        headers = create_key_header(owner, expires_at=timezone.now() + timedelta(hours=1))
        assert api_keys.get_credential(headers["X-API-Key"], timezone.now()).scopes == {"read"}
        change(owner)
        check_unauthenticated(books, api.get(books, headers=headers), "The API key is not valid", INVALID)


def test_to_read_no_permission_is_looked_up(api: httpx.Client, books: str, librarian: User, settings: Settings) -> None:
    """On the compiled path: in Django's, somebody may ask the credential for its rights."""
    headers, settings.COMPILED_PATH = create_key_header(librarian), True
    with open_client() as client, CaptureQueriesContext(connection) as queries:
        assert read_books(client, books, headers) == 200
    assert not [query["sql"] for query in queries if "auth_permission" in query["sql"]]


def test_only_the_key_itself_opens_and_it_is_not_stored(api: httpx.Client, librarian: User) -> None:
    text, other = (create_key_header(librarian)["X-API-Key"] for _ in range(2))
    for wrong in (text[:-1], f"{text}x", f"{text[:-4]}xxxx", text[:17] + other[17:]):
        assert api.get("/api/books", headers={"X-API-Key": wrong}).status_code == 401
    rows = " ".join(str(value) for row in APIKey.objects.values() for value in row.values())
    assert text[17:] not in rows
    assert set(APIKey.objects.values_list("last_used_at", flat=True)) == {None}


def test_the_last_use_is_recorded_once_a_minute(librarian: User) -> None:
    """SQLite compares times as texts, so both must be written alike."""
    _, text = api_keys.create_key(librarian, "a program", frozenset({"read"}), NOW)
    recorded = list[datetime | None]()
    later = NOW + timedelta(minutes=1, microseconds=1)
    for now in (NOW, NOW + timedelta(seconds=1), NOW + timedelta(minutes=1), later, later + timedelta(seconds=1)):
        api_keys.get_credential(text, now)
        recorded += APIKey.objects.values_list("last_used_at", flat=True)
    assert recorded == [NOW, NOW, NOW, later, later]


def test_queries_of_each_credential(
    api: httpx.Client, books: str, librarian: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    token, key = create_token_header(librarian), create_key_header(librarian)
    expired, query_of_the_list = create_token_header(librarian, iat=1, exp=3601), 1
    for headers, count in (
        # The first token has the list of revocations read, by two queries, and it is kept for some seconds.
        (token, query_of_the_list + 2),
        (token, query_of_the_list),
        ({}, query_of_the_list),
        # A key is found by one, and its use is recorded by another once a minute.
        (key, query_of_the_list + 2),
        (key, query_of_the_list + 1),
        (expired, 0),
        (INVALID_CREDENTIALS["nonsense"], 0),
        (INVALID_CREDENTIALS["key"], 0),
    ):
        with django_assert_num_queries(count):
            api.get(books, headers=headers)


def test_the_limit_is_checked_after_the_scope(
    api: httpx.Client, settings: Settings, librarian: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.API_RATE_LIMIT = (1, 60)
    settings.LIBRARY_ACCESS = "protected"
    monkeypatch.setattr(BookViewSet, "throttle_classes", [CallerThrottle])
    build_counter.cache_clear()
    headers = create_token_header(librarian, scope="read")
    wrong = {"Content-Type": "text/plain", **create_token_header(librarian)}
    assert [read_books(api, "/api/books", headers) for _ in range(2)] == [200, 429]
    assert create_book(api, "/api/books", headers) == 403
    assert api.post("/api/books", content=b"{}", headers=wrong).status_code == 429


def test_a_stored_response_belongs_to_one_credential(api: httpx.Client, librarian: User) -> None:
    """Each credential has its own Idempotency-Keys."""
    idempotency_header = {"Idempotency-Key": "the-same-key"}
    responses = [
        api.post("/api/v2/books", json=build_book(), headers={**idempotency_header, **headers})
        for headers in (
            create_token_header(librarian),
            create_token_header(create_reader("other"), scope="write"),
            create_key_header(librarian),
            {},
        )
    ]
    assert [response.status_code for response in responses] == [201, 201, 201, 201]


def test_a_book_that_its_reader_may_not_read_is_not_answered(
    api: httpx.Client, librarian: User, book: dict[str, Any]
) -> None:
    reader, listener = create_key_header(librarian, "read"), create_key_header(librarian, "webhooks")
    # From the second request on, Django answers only what is refused.
    for offset, status in ((0, 200), (0, 200), (1, 404), (10**20, 404)):
        address = f"/api/books/{book['id'] + offset}"
        statuses = [api.get(address, headers=headers).status_code for headers in (reader, listener)]
        assert statuses == [status, 403]

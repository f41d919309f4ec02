"""Who may do what with the books (LIBRARY_ACCESS), and what a refusal says in each version."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from books.api.views import BookViewSet
from books.models import Book
from library_site.http.rate_limit import make_counter
from oauth import api_keys
from oauth.models import APIKey
from oauth.scopes import parse_scopes
from oauth.throttling import CallerThrottle
from tests.support.books import new_book
from tests.support.forged_tokens import claims_of, forged
from tests.support.oauth_flows import (
    bearer,
    confidential_app,
    deactivated,
    deactivated_silently,
    librarian,
    reader,
    tokens_for,
)

CHALLENGE = 'Bearer realm="Library API"'
INVALID = f'{CHALLENGE}, error="invalid_token"'
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
    return librarian()


def token(user: User, scopes: str = "read write", **changed: Any) -> dict[str, str]:
    return bearer(forged(claims_of(user.pk, scope=scopes, **changed)))


def key(user: User, scopes: str = "read write", **members: Any) -> dict[str, str]:
    _, text = api_keys.create_key(user, "a program", parse_scopes(scopes), timezone.now(), **members)
    return {"X-API-Key": text}


def worded(books: str, code: str, message: str, answer: httpx.Response) -> dict[str, Any]:
    """A refusal as the version words it."""
    if books == "/api/books":
        return {"detail": message}
    return {"error": {"code": code, "message": message, "requestId": answer.headers["X-Request-ID"]}}


def require_refused(books: str, answer: httpx.Response, message: str, challenge: str) -> None:
    """401 in the version's shape."""
    assert answer.status_code == 401
    assert answer.json() == worded(books, "UNAUTHENTICATED", message, answer)
    assert answer.headers["WWW-Authenticate"] == challenge


def reading(client: httpx.Client, books: str, headers: dict[str, str] | None = None) -> int:
    return client.get(books, headers=headers).status_code


def writing(client: httpx.Client, books: str, headers: dict[str, str] | None = None) -> int:
    return client.post(books, json=new_book(), headers=headers).status_code


@pytest.mark.parametrize(
    ("setting", "statuses"), [("open", (200, 201)), ("protect-writes", (200, 401)), ("protected", (401, 401))]
)
def test_what_needs_no_credential(
    api: httpx.Client, settings: Settings, books: str, setting: str, statuses: tuple[int, int]
) -> None:
    settings.LIBRARY_ACCESS = setting
    assert (reading(api, books), writing(api, books)) == statuses


def test_who_shows_no_credential_is_told_how(api: httpx.Client, settings: Settings, books: str) -> None:
    settings.LIBRARY_ACCESS = "protected"
    require_refused(books, api.get(books), NO_CREDENTIAL, CHALLENGE)
    require_refused(books, api.post(books, json=new_book()), NO_CREDENTIAL, CHALLENGE)
    assert not Book.objects.exists()


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(("setting", "free"), [("protect-writes", ["GET", "HEAD", "OPTIONS"]), ("protected", [])])
def test_what_is_no_reading_is_writing(
    api: httpx.Client, settings: Settings, method: str, setting: str, free: list[str]
) -> None:
    settings.LIBRARY_ACCESS = setting
    answer = api.request(method, "/api/v2/books/1")
    assert (answer.status_code == 401) is (method not in free)


@pytest.mark.parametrize("address", ["/api/v2/books/bulk", "/api/v2/books/bulk?dry_run=true"])
def test_bulk_is_writing(api: httpx.Client, settings: Settings, user: User, address: str) -> None:
    settings.LIBRARY_ACCESS = "protect-writes"
    work = {"operations": [{"op": "create", "book": new_book()}]}
    headers = [{}, token(user, "read"), token(user, "write")]
    assert [api.post(address, json=work, headers=one).status_code for one in headers] == [401, 403, 200]


@pytest.mark.parametrize("address", ["/", "/docs", "/openapi.json", "/.well-known/jwks.json"])
def test_what_is_no_book_needs_no_credential(api: httpx.Client, settings: Settings, address: str) -> None:
    settings.LIBRARY_ACCESS = "protected"
    assert api.get(address).status_code == 200


@pytest.mark.parametrize("credential", [token, key])
def test_a_credential_opens_what_its_scopes_name(
    api: httpx.Client, policy: str, books: str, user: User, credential: Any
) -> None:
    statuses = {
        scopes: (reading(api, books, credential(user, scopes)), writing(api, books, credential(user, scopes)))
        for scopes in ("read", "write", "read write")
    }
    assert statuses == {"read": (200, 403), "write": (403, 201), "read write": (200, 201)}


@pytest.mark.parametrize("credential", [token, key])
def test_a_missing_scope_is_named(api: httpx.Client, policy: str, books: str, user: User, credential: Any) -> None:
    answer = api.post(books, json=new_book(), headers=credential(user, "read"))
    assert answer.status_code == 403
    assert answer.json() == worded(books, "FORBIDDEN", "The credential lacks the scope write", answer)
    assert answer.headers["WWW-Authenticate"] == f'{CHALLENGE}, error="insufficient_scope", scope="write"'


def test_a_token_of_the_whole_flow_opens_the_library(api: httpx.Client, settings: Settings, books: str) -> None:
    settings.LIBRARY_ACCESS = "protected"
    given = tokens_for(api, librarian(), confidential_app())
    assert writing(api, books, bearer(given["access_token"])) == 201


def test_a_session_is_no_credential(api: httpx.Client, settings: Settings, books: str, user: User) -> None:
    tokens_for(api, user, confidential_app())
    settings.LIBRARY_ACCESS = "protected"
    assert api.cookies
    assert reading(api, books) == 401


BAD = {
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


@pytest.mark.parametrize("headers", BAD.values(), ids=BAD)
def test_a_bad_credential_is_refused_even_where_none_is_needed(
    api: httpx.Client, policy: str, books: str, headers: dict[str, str]
) -> None:
    answer = api.get(books, headers=headers)
    require_refused(books, answer, message(answer), INVALID)


def message(answer: httpx.Response) -> str:
    """The sentence, wherever the version has it."""
    body = answer.json()
    found: str = body["detail"] if "detail" in body else body["error"]["message"]
    return found


def test_each_refusal_says_what_is_wrong(api: httpx.Client, books: str, user: User) -> None:
    refusals = {
        "Authorization takes a Bearer token": {"Authorization": "Basic eDp5"},
        "The access token is not valid": {"Authorization": "Bearer nonsense"},
        "The access token has expired": token(user, iat=1, exp=3601),
        "The API key is not valid": {"X-API-Key": "nonsense"},
        "Send one credential, a Bearer token or an API key": {**token(user), **key(user)},
    }
    assert [message(api.get(books, headers=headers)) for headers in refusals.values()] == list(refusals)


@pytest.mark.parametrize("name", ["access_token", "token", "api_key", "X-API-Key", "apikey", "key"])
def test_a_credential_in_the_query_is_not_read(api: httpx.Client, settings: Settings, user: User, name: str) -> None:
    settings.LIBRARY_ACCESS = "protected"
    for secret in (forged(claims_of(user.pk)), key(user)["X-API-Key"]):
        assert api.get("/api/books", params={name: secret}).status_code == 401


@pytest.mark.parametrize("good_one", ["Bearer", "key", "both", "neither"])
def test_two_credentials_at_once_are_refused(api: httpx.Client, books: str, user: User, good_one: str) -> None:
    headers = {"Authorization": "Bearer nonsense", "X-API-Key": "nonsense"}
    if good_one in ("Bearer", "both"):
        headers |= token(user)
    if good_one in ("key", "both"):
        headers |= key(user)
    require_refused(
        books, api.get(books, headers=headers), "Send one credential, a Bearer token or an API key", INVALID
    )


def revoked(user: User) -> None:
    api_keys.revoke_keys(APIKey.objects.filter(owner=user), timezone.now())


def expired(user: User) -> None:
    APIKey.objects.filter(owner=user).update(expires_at=timezone.now())


@pytest.mark.parametrize("change", [revoked, expired, deactivated, deactivated_silently, User.delete])
def test_a_key_that_is_over_opens_nothing(api: httpx.Client, policy: str, books: str, user: User, change: Any) -> None:
    headers = key(user, expires_at=timezone.now() + timedelta(hours=1))
    assert reading(api, books, headers) == 200
    change(user)
    require_refused(books, api.get(books, headers=headers), "The API key is not valid", INVALID)


def test_a_key_loses_what_its_owner_loses(api: httpx.Client, books: str, user: User) -> None:
    headers, alone = key(user), key(user, "write")
    user.groups.clear()
    assert (reading(api, books, headers), writing(api, books, headers)) == (200, 403)
    assert writing(api, books, alone) == 403


def test_a_key_never_had_what_its_owner_had_not(api: httpx.Client, books: str) -> None:
    assert writing(api, books, key(reader(), "read write")) == 403


@pytest.mark.parametrize("change", [lambda text: text[:-1], lambda text: text + "x", lambda text: text[:-4] + "xxxx"])
def test_a_key_that_is_nearly_right_opens_nothing(api: httpx.Client, user: User, change: Any) -> None:
    wrong = change(key(user)["X-API-Key"])
    assert api.get("/api/books", headers={"X-API-Key": wrong}).status_code == 401


def test_a_key_of_another_prefix_opens_nothing(api: httpx.Client, user: User) -> None:
    one, other = key(user)["X-API-Key"], key(user)["X-API-Key"]
    assert api.get("/api/books", headers={"X-API-Key": one[:17] + other[17:]}).status_code == 401


def test_the_key_itself_is_not_stored(user: User) -> None:
    text = key(user)["X-API-Key"]
    [stored] = APIKey.objects.values()
    assert text not in map(str, stored.values())
    assert text[17:] not in " ".join(map(str, stored.values()))


def test_the_last_use_is_noted_once_a_minute(user: User) -> None:
    _, text = api_keys.create_key(user, "a program", parse_scopes("read"), NOW)
    noted: list[datetime | None] = []
    for seconds in (0, 1, 59, 61, 62):
        now = NOW + timedelta(seconds=seconds)
        api_keys.record_use(api_keys.find_key(text, now), now)
        noted += APIKey.objects.values_list("last_used_at", flat=True)
    assert noted == [NOW, NOW, NOW, NOW + timedelta(seconds=61), NOW + timedelta(seconds=61)]


def test_a_refused_key_was_not_used(api: httpx.Client, user: User) -> None:
    text = key(user)["X-API-Key"]
    api.get("/api/books", headers={"X-API-Key": text[:-4] + "xxxx"})
    assert APIKey.objects.values_list("last_used_at", flat=True).get() is None


def test_a_token_costs_no_query(
    api: httpx.Client, books: str, user: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    headers = token(user)
    # It reads the list of revocations, good for seconds.
    api.get(books, headers=headers)
    with django_assert_num_queries(1):
        api.get(books, headers=headers)
    with django_assert_num_queries(1):
        api.get(books)


def test_a_token_costs_a_list_of_two_queries_now_and_then(
    api: httpx.Client, user: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    headers = token(user)
    with django_assert_num_queries(1 + 2):
        api.get("/api/books", headers=headers)


def test_a_bad_token_costs_nothing(
    api: httpx.Client, user: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        api.get("/api/books", headers={"Authorization": "Bearer nonsense"})
        api.get("/api/books", headers=token(user, iat=1, exp=3601))
        api.get("/api/books", headers={"X-API-Key": "nonsense"})


def test_a_key_costs_one_query_and_once_a_minute_a_note(
    api: httpx.Client, books: str, user: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    headers = key(user)
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
@pytest.mark.parametrize("headers", [{}, BAD["nonsense"], BAD["key"]])
def test_method_and_version_come_before_the_credential_and_all_else_after(
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
    answer = api.request(method, address, content=content, headers={"Content-Type": media_type, **headers})
    assert answer.status_code == status


@pytest.mark.parametrize(
    ("method", "address", "content", "media_type", "without", "with_it"),
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
def test_scopes_come_before_what_a_request_says(
    api: httpx.Client,
    user: User,
    method: str,
    address: str,
    content: bytes,
    media_type: str,
    without: int,
    with_it: int,
) -> None:
    answers = [
        api.request(method, address, content=content, headers={"Content-Type": media_type, **token(user, scopes)})
        for scopes in ("read", "write")
    ]
    assert [answer.status_code for answer in answers] == [without, with_it]


def test_who_is_refused_is_not_counted_and_who_is_beyond_the_limit_is_told_after(
    api: httpx.Client, settings: Settings, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.API_RATE_LIMIT = (1, 60)
    settings.LIBRARY_ACCESS = "protected"
    monkeypatch.setattr(BookViewSet, "throttle_classes", [CallerThrottle])
    make_counter.cache_clear()
    headers = token(user, "read")
    wrong = {"Content-Type": "text/plain", **token(user)}
    assert [reading(api, "/api/books") for _ in range(3)] == [401, 401, 401]
    assert [reading(api, "/api/books", headers) for _ in range(2)] == [200, 429]
    assert writing(api, "/api/books", headers) == 403
    assert api.post("/api/books", content=b"{}", headers=wrong).status_code == 429


def test_tokens_of_one_app_for_one_person_are_one_caller(
    api: httpx.Client, user: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.API_RATE_LIMIT = (1, 60)
    monkeypatch.setattr(BookViewSet, "throttle_classes", [CallerThrottle])
    make_counter.cache_clear()
    other = reader("other")
    callers = [token(user), token(user), token(other), token(user, client_id="shelf"), key(user), key(user), {}]
    assert [reading(api, "/api/books", headers) for headers in callers] == [200, 429, 200, 200, 200, 200, 200]


def test_an_answer_is_kept_for_a_credential_alone(api: httpx.Client, user: User) -> None:
    """Idempotency-Key is keyed by credential (decisions of README)."""
    once = {"Idempotency-Key": "the-same-key"}
    answers = [
        api.post("/api/v2/books", json=new_book(), headers={**once, **headers})
        for headers in (token(user), token(reader("other"), "write"), key(user), {})
    ]
    assert [answer.status_code for answer in answers] == [201, 201, 201, 201]


class Away:
    """Stands before a connection whose database is away."""

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:  # Django's
        raise OperationalError("connection refused")


@pytest.mark.parametrize("credential", [token, key])
def test_while_the_database_is_away_a_credential_is_neither_good_nor_bad(
    api: httpx.Client, policy: str, books: str, user: User, credential: Any
) -> None:
    headers = credential(user)
    with connection.execute_wrapper(Away()):
        answer = api.get(books, headers=headers)
    assert answer.status_code == 503
    assert answer.json() == worded(books, "UNAVAILABLE", "The library is out of reach, try again later", answer)


def test_while_the_database_is_away_others_are_answered_as_ever(
    api: httpx.Client, settings: Settings, books: str
) -> None:
    settings.LIBRARY_ACCESS = "protected"
    with connection.execute_wrapper(Away()):
        assert reading(api, books) == 401
        assert reading(api, books, BAD["nonsense"]) == 401
        assert reading(api, books, BAD["key"]) == 401
        assert api.get("/.well-known/jwks.json").status_code == 200

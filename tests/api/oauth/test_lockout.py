"""Clients and users that guess passwords, secrets, codes or tokens are locked out for a time."""

import base64
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from threading import Barrier, Thread, get_ident
from typing import Any, ClassVar
from unittest.mock import Mock

import httpx
import pytest
from asgiref.sync import async_to_sync
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib.auth import BACKEND_SESSION_KEY, aauthenticate, authenticate
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connections, models
from django.db.models import F
from django.test import Client, RequestFactory
from oauth2_provider.models import Application
from pytest_django import Settings

from oauth.passwords import lockout
from oauth.passwords.hashers import HashingBusy
from tests.support.account_pages import PASSWORD
from tests.support.applications import open_client
from tests.support.oauth_flows import (
    SECRET,
    build_basic_header,
    build_code_request,
    build_refresh_request,
    create_confidential_app,
    create_public_app,
    parse_oauth_error,
    submit_sign_in,
)

GUESS = "a-guess-that-must-be-nowhere"
MAX_FAILURES, MAX_LOGIN_FAILURES = 10, 5
ENDED_TOKEN = "a-refresh-token-that-is-over"


def guess_secret(client: httpx.Client, client_id: str = "bookshop", endpoint: str = "/oauth/token") -> httpx.Response:
    form = {"grant_type": "refresh_token", "refresh_token": "x", "token": "x"}
    return client.post(endpoint, data={**form, "client_id": client_id, "client_secret": GUESS})


def guess_with_basic(client: httpx.Client) -> httpx.Response:
    form = {"grant_type": "authorization_code", "code": "x"}
    return client.post("/oauth/token", data=form, headers=build_basic_header("bookshop", GUESS))


def send_ended_token(client: httpx.Client, app: Application) -> int:
    return client.post("/oauth/refresh", data=build_refresh_request(app, ENDED_TOKEN)).status_code


def guess_passwords(client: httpx.Client, *names: str) -> list[int]:
    """Returns the status of each guess."""
    return [submit_sign_in(client, name, GUESS).status_code for name in names]


def number_names(count: int) -> list[str]:
    return [f"name{number}" for number in range(count)]


def exhaust_failures(guess: Callable[[], httpx.Response]) -> httpx.Response:
    """Guesses until the lockout, and returns its response. Most guesses are only counted."""
    assert guess().status_code == 401
    newest = AccessAttempt.objects.latest("attempt_time")
    AccessAttempt.objects.filter(pk=newest.pk).update(failures_since_start=MAX_FAILURES - 1)
    assert guess().status_code == 401
    return guess()


def pass_time(**time: int) -> None:
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - timedelta(**time))


def test_a_client_that_guesses_secrets_is_locked_out_at_each_endpoint(api: httpx.Client, bookshop: Application) -> None:
    """Unknown clients too: otherwise the response would show which clients exist."""
    for client_id, endpoint in (
        ("bookshop", "/oauth/token"),
        ("nobody", "/oauth/refresh"),
        ("bookshop", "/oauth/revoke"),
        ("nobody", "/oauth/introspect"),
    ):
        response = exhaust_failures(lambda: guess_secret(api, client_id, endpoint))  # noqa: B023  # called at once
        assert parse_oauth_error(response) == (429, "temporarily_unavailable"), endpoint
        assert (response.headers["Retry-After"], response.headers["Cache-Control"]) == ("300", "no-store")
        AccessAttempt.objects.all().delete()


def test_guesses_in_the_header_and_in_the_body_count_together(api: httpx.Client, bookshop: Application) -> None:
    for _ in range(MAX_FAILURES // 2):
        assert guess_secret(api).status_code == 401
        assert guess_with_basic(api).status_code == 401
    assert guess_secret(api).status_code == 429
    assert guess_with_basic(api).status_code == 429


def test_a_lockout_is_for_one_client_at_one_address_and_some_minutes(
    api: httpx.Client, bookshop: Application, shelf: Application
) -> None:
    reseller = create_confidential_app("reseller")
    exhaust_failures(lambda: guess_secret(api))
    assert [send_ended_token(api, app) for app in (bookshop, reseller, shelf)] == [429, 400, 400]
    with open_client("192.0.2.7") as other:
        assert send_ended_token(other, bookshop) == 400
        assert exhaust_failures(lambda: guess_secret(other)).status_code == 429
    pass_time(minutes=5, seconds=1)
    assert send_ended_token(api, bookshop) == 400
    # The old failures do not count again.
    assert [guess_secret(api).status_code for _ in range(2)] == [401, 401]


def test_an_app_that_sends_its_secret_is_not_counted(api: httpx.Client, bookshop: Application) -> None:
    assert send_ended_token(api, bookshop) == 400
    assert not AccessAttempt.objects.exists()


def test_users_of_a_public_app_may_fail_more_often_and_are_not_locked_out_by_guessed_secrets(
    api: httpx.Client, shelf: Application
) -> None:
    """Many users behind one address may each send an ended token."""
    assert exhaust_failures(lambda: guess_secret(api, "shelf")).status_code == 429
    assert send_ended_token(api, shelf) == 400
    AccessAttempt.objects.filter(username__startswith="public").update(failures_since_start=99)
    assert [send_ended_token(api, shelf) for _ in range(2)] == [400, 429]


def test_no_secret_is_stored(api: httpx.Client, bookshop: Application) -> None:
    code = "a-code-that-is-over"
    api.post("/oauth/token", data=build_code_request(bookshop, code, client_secret=GUESS))
    send_ended_token(api, create_public_app())
    guess_with_basic(api)
    submit_sign_in(api, "reader", GUESS)
    tables: list[type[models.Model]] = [AccessAttempt, AccessFailureLog, AccessLog]
    rows = "\n".join(str(row) for table in tables for row in table._default_manager.values())
    assert "bookshop" in rows
    assert "reader" in rows
    for secret in (GUESS, code, ENDED_TOKEN, SECRET, base64.b64encode(f"bookshop:{GUESS}".encode()).decode()):
        assert secret not in rows


@pytest.mark.parametrize("name", ["jane", "nobody"])
def test_a_user_whose_password_is_guessed_is_locked_out(api: httpx.Client, jane: User, name: str) -> None:
    User.objects.create_user("emma", password=PASSWORD)
    assert guess_passwords(api, *[name] * 5) == [200] * 4 + [429]
    rows = list(AccessAttempt.objects.values())
    response = submit_sign_in(api, name, PASSWORD)
    assert (response.status_code, response.headers["Retry-After"]) == (429, "300")
    # A refused guess does not make the lockout longer.
    assert list(AccessAttempt.objects.values()) == rows
    assert submit_sign_in(api, "emma", PASSWORD).status_code == 302
    with open_client("192.0.2.7") as other:
        assert submit_sign_in(other, "jane", PASSWORD).status_code == 302


def test_a_sign_in_resets_the_failures(api: httpx.Client, jane: User) -> None:
    assert guess_passwords(api, *["jane"] * 4) == [200] * 4
    assert submit_sign_in(api, "jane", PASSWORD).status_code == 302
    assert not AccessAttempt.objects.exists()


def sign_in_directly(password: str, request: Any = None) -> bool:
    return authenticate(request, username="jane", password=password) is not None


# A password may come without a request, from a command or a view that forgets it.
@pytest.mark.parametrize("make_request", [partial(RequestFactory().get, "/"), lambda: None])
def test_a_right_password_is_no_failure(jane: User, make_request: Callable[[], Any]) -> None:
    """Views of an app may ask for it with each request, without a sign-in."""
    assert all(sign_in_directly(PASSWORD, make_request()) for _ in range(MAX_LOGIN_FAILURES + 1))
    assert [sign_in_directly(GUESS, make_request()) for _ in range(MAX_LOGIN_FAILURES)] == [False] * 5
    assert not sign_in_directly(PASSWORD, make_request())
    assert sign_in_directly(PASSWORD, RequestFactory().get("/", REMOTE_ADDR="192.0.2.7"))


def test_a_right_password_does_not_keep_the_failures(jane: User) -> None:
    """A program may send it every minute, and its user may mistype another one elsewhere."""
    factory = RequestFactory()
    assert not any(sign_in_directly(GUESS, factory.get("/")) for _ in range(MAX_LOGIN_FAILURES - 1))
    before = AccessAttempt.objects.get().attempt_time
    assert sign_in_directly(PASSWORD, factory.get("/"))
    assert AccessAttempt.objects.get().attempt_time == before


def test_a_password_that_nobody_had_time_to_check_is_no_failure(jane: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(User, "check_password", Mock(side_effect=HashingBusy))
    with pytest.raises(HashingBusy):
        sign_in_directly(PASSWORD)
    assert AccessAttempt.objects.get().failures_since_start == 0


def test_an_attempt_that_is_refused_for_those_beside_it_is_no_failure(
    jane: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client may send the right password with several requests at the same time."""
    request = RequestFactory().get("/")
    count = lockout.count_attempt

    def count_among_others(request: Any, credentials: Any) -> None:
        count(request, credentials)
        AccessAttempt.objects.update(failures_since_start=F("failures_since_start") + MAX_LOGIN_FAILURES)

    monkeypatch.setattr(lockout, "count_attempt", count_among_others)
    assert not sign_in_directly(PASSWORD, request)
    assert AccessAttempt.objects.get().failures_since_start == MAX_LOGIN_FAILURES


def test_a_password_is_counted_by_asynchronous_code(jane: User) -> None:
    guess = async_to_sync(aauthenticate)
    assert guess(username="jane", password=PASSWORD) == jane
    assert guess(username="jane", password=GUESS) is None
    assert AccessAttempt.objects.get().failures_since_start == 1


def test_sessions_go_on_in_the_release_before_and_after(client: Client, jane: User) -> None:
    client.force_login(jane)
    stored = Session.objects.get().get_decoded()
    assert stored[BACKEND_SESSION_KEY] == "django.contrib.auth.backends.ModelBackend"
    assert client.get(CHANGE_PASSWORD).status_code == 200


def test_many_names_at_one_address_are_locked_out(
    api: httpx.Client, jane: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lockout, "MAX_ADDRESS_FAILURES", 4)
    assert guess_passwords(api, *number_names(2)) == [200] * 2
    assert submit_sign_in(api, "jane", PASSWORD).status_code == 302
    api.cookies.clear()
    # A sign-in does not reset the failures of others: a person with an account could guess their passwords.
    assert guess_passwords(api, "emma", "anne", "emily") == [200, 429, 429]
    assert submit_sign_in(api, "jane", PASSWORD).status_code == 429
    with open_client("192.0.2.7") as other:
        assert submit_sign_in(other, "jane", PASSWORD).status_code == 302
    pass_time(minutes=5, seconds=1)
    assert submit_sign_in(api, "jane", PASSWORD).status_code == 302


def test_failures_that_are_over_do_not_count_again(api: httpx.Client, jane: User) -> None:
    guess_passwords(api, *["jane"] * 4)
    pass_time(minutes=6)
    assert guess_passwords(api, "jane", "jane") == [200, 200]
    assert AccessAttempt.objects.get().failures_since_start == 2


def test_failures_of_clients_and_people_count_apart(api: httpx.Client, jane: User, bookshop: Application) -> None:
    guess_secret(api)
    guess_secret(api, "nobody")
    assert AccessAttempt.objects.update(failures_since_start=lockout.MAX_ADDRESS_FAILURES) == 2
    assert submit_sign_in(api, "jane", PASSWORD).status_code == 302
    api.cookies.clear()
    guess_passwords(api, "client:bookshop")
    assert AccessAttempt.objects.filter(username="user:client:bookshop").exists()


class HeldHasher(MD5PasswordHasher):
    """Ends a hash only when each of the guesses has reached a hasher or is refused, as if hashes took very long."""

    guesses: ClassVar[Barrier]
    evaluating_threads: ClassVar[set[int]]

    def encode(self, password: str, salt: str) -> str:
        self.evaluating_threads.add(get_ident())
        self.guesses.wait()
        return super().encode(password, salt)


def guess_password(name: str) -> None:
    request = RequestFactory().post("/accounts/login")
    try:
        assert authenticate(request, username=name, password=GUESS) is None
        if get_ident() not in HeldHasher.evaluating_threads:
            HeldHasher.guesses.wait()
    finally:
        connections.close_all()


@pytest.mark.usefixtures("transactional_db")
@pytest.mark.parametrize("names", [["jane"] * 8, number_names(8)], ids=["name", "address"])
def test_guesses_at_the_same_time_do_not_exceed_the_limit(
    names: list[str], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = "MAX_LOGIN_FAILURES" if names[0] == "jane" else "MAX_ADDRESS_FAILURES"
    monkeypatch.setattr(lockout, limit, 3)
    settings.PASSWORD_HASHERS = [f"{__name__}.{HeldHasher.__name__}"]
    HeldHasher.guesses, HeldHasher.evaluating_threads = Barrier(len(names), timeout=60), set()
    threads = [Thread(target=guess_password, args=[name]) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 < len(HeldHasher.evaluating_threads) <= 3


CHANGE_PASSWORD = "/accounts/password"


def change_password(browser: Client, old: str, new: str = "northanger-abbey") -> Any:
    return browser.post(CHANGE_PASSWORD, {"old_password": old, "new_password1": new, "new_password2": new})


@pytest.fixture
def signed_in_jane(client: Client, jane: User) -> Client:
    client.force_login(jane)
    return client


def test_a_stolen_session_cannot_guess_the_password(signed_in_jane: Client) -> None:
    assert [change_password(signed_in_jane, GUESS).status_code for _ in range(5)] == [200] * 5
    response = change_password(signed_in_jane, PASSWORD)
    assert (response.status_code, response.headers["Retry-After"]) == (429, "300")


def test_the_old_password_clears_the_failures_of_this_person_alone(signed_in_jane: Client, api: httpx.Client) -> None:
    submit_sign_in(api, "emma", GUESS)
    change_password(signed_in_jane, GUESS)
    # To look at the page clears nothing.
    assert signed_in_jane.get(CHANGE_PASSWORD).status_code == 200
    assert AccessAttempt.objects.count() == 2
    assert change_password(signed_in_jane, PASSWORD, new="1").status_code == 200
    assert AccessAttempt.objects.get().username == "user:emma"
    assert change_password(signed_in_jane, PASSWORD).status_code == 302
    assert User.objects.get().check_password("northanger-abbey")

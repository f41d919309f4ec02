"""What slows down those who guess passwords, secrets, codes and tokens."""

import base64
from collections.abc import Callable
from datetime import timedelta

import httpx
import pytest
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib.auth.models import User
from django.db import models
from django.db.models import F
from oauth2_provider.models import Application

from tests.support.oauth_flows import (
    SECRET,
    code_for,
    confidential_app,
    public_app,
    reader,
    redemption,
    refreshing,
    refusal,
    tokens_for,
)

GUESS = "a-guess-that-must-be-nowhere"
ALLOWED = 10


@pytest.fixture
def bookshop(db: None) -> Application:
    return confidential_app()


def elsewhere() -> httpx.Client:
    from library_site.wsgi import application

    transport = httpx.WSGITransport(app=application, remote_addr="192.0.2.7")
    return httpx.Client(transport=transport, base_url="http://127.0.0.1")


def guessing(client: httpx.Client, client_id: str = "bookshop", endpoint: str = "/oauth/token") -> httpx.Response:
    form = {"grant_type": "refresh_token", "refresh_token": "x", "token": "x"}
    return client.post(endpoint, data={**form, "client_id": client_id, "client_secret": GUESS})


def guessing_with_basic(client: httpx.Client) -> httpx.Response:
    headers = {"Authorization": f"Basic {base64.b64encode(f'bookshop:{GUESS}'.encode()).decode()}"}
    return client.post("/oauth/token", data={"grant_type": "authorization_code", "code": "x"}, headers=headers)


def exhausted(guess: Callable[[], httpx.Response], times: int = ALLOWED) -> None:
    """Guesses as often as is answered, and once more."""
    assert [guess().status_code for _ in range(times)] == [401] * times
    assert guess().status_code == 429


@pytest.mark.parametrize("endpoint", ["/oauth/token", "/oauth/refresh", "/oauth/revoke", "/oauth/introspect"])
def test_who_guesses_secrets_must_wait(api: httpx.Client, bookshop: Application, endpoint: str) -> None:
    assert [guessing(api, endpoint=endpoint).status_code for _ in range(ALLOWED)] == [401] * ALLOWED
    answer = guessing(api, endpoint=endpoint)
    assert refusal(answer) == (429, "temporarily_unavailable")
    assert answer.headers["Retry-After"] == "300"
    assert answer.headers["Cache-Control"] == "no-store"


def test_header_and_body_are_one_way_to_guess(api: httpx.Client, bookshop: Application) -> None:
    for _ in range(ALLOWED // 2):
        assert guessing(api).status_code == 401
        assert guessing_with_basic(api).status_code == 401
    assert guessing(api).status_code == 429
    assert guessing_with_basic(api).status_code == 429


def test_unknown_clients_are_guessed_as_slowly(api: httpx.Client, bookshop: Application) -> None:
    """Or it would tell which there are."""
    exhausted(lambda: guessing(api, "nobody"))


def test_while_a_client_waits_even_the_right_secret_does(api: httpx.Client, bookshop: Application) -> None:
    given = tokens_for(api, reader(), bookshop)
    exhausted(lambda: guessing(api))
    form = refreshing(bookshop, given["refresh_token"])
    assert api.post("/oauth/token", data=form).status_code == 429


def test_another_address_is_not_held_up(api: httpx.Client, bookshop: Application) -> None:
    given = tokens_for(api, reader(), bookshop)
    exhausted(lambda: guessing(api))
    form = refreshing(bookshop, given["refresh_token"])
    with elsewhere() as other:
        assert other.post("/oauth/token", data=form).status_code == 200
        exhausted(lambda: guessing(other))


def test_another_client_is_not_held_up(api: httpx.Client, bookshop: Application) -> None:
    reseller, shelf, user = confidential_app("reseller"), public_app(), reader()
    exhausted(lambda: guessing(api))
    assert tokens_for(api, user, reseller)["expires_in"] == 3600
    assert tokens_for(api, user, shelf)["expires_in"] == 3600


def test_after_the_wait_the_right_secret_is_heard(api: httpx.Client, bookshop: Application) -> None:
    given = tokens_for(api, reader(), bookshop)
    exhausted(lambda: guessing(api))
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - timedelta(minutes=5, seconds=1))
    form = refreshing(bookshop, given["refresh_token"])
    assert api.post("/oauth/token", data=form).status_code == 200


def test_guesses_that_are_far_apart_hold_up_nobody(api: httpx.Client, bookshop: Application) -> None:
    for _ in range(ALLOWED + 2):
        assert guessing(api).status_code == 401
        AccessAttempt.objects.update(attempt_time=F("attempt_time") - timedelta(minutes=6))


def test_a_confidential_app_with_its_secret_is_never_braked(api: httpx.Client, bookshop: Application) -> None:
    dead = refreshing(bookshop, "a-token-that-is-over")
    statuses = {api.post("/oauth/refresh", data=dead).status_code for _ in range(ALLOWED * 3)}
    assert statuses == {400}
    assert not AccessAttempt.objects.exists()
    assert tokens_for(api, reader(), bookshop)["expires_in"] == 3600


def test_who_guesses_at_a_public_app_must_wait_longer_on(api: httpx.Client, db: None) -> None:
    """As many people as share its address may each meet a token that is over."""
    shelf = public_app()
    dead = refreshing(shelf, "a-token-that-is-over")
    statuses = [api.post("/oauth/refresh", data=dead).status_code for _ in range(101)]
    assert statuses == [400] * 100 + [429]


def test_secrets_for_a_public_app_do_not_hold_up_its_people(api: httpx.Client, db: None) -> None:
    shelf = public_app()
    exhausted(lambda: guessing(api, "shelf"))
    assert tokens_for(api, reader(), shelf)["expires_in"] == 3600


def stored() -> str:
    """All that django-axes keeps."""
    tables: list[type[models.Model]] = [AccessAttempt, AccessFailureLog, AccessLog]
    return "\n".join(str(row) for table in tables for row in table._default_manager.values())


def test_no_secret_is_kept(api: httpx.Client, bookshop: Application) -> None:
    code = code_for(api, reader(), bookshop)
    api.post("/oauth/token", data=redemption(bookshop, code, client_secret=GUESS))
    api.post("/oauth/refresh", data=refreshing(public_app(), "a-refresh-token"))
    guessing_with_basic(api)
    api.cookies.clear()
    signing_in(api, "reader", GUESS)
    kept = stored()
    assert "bookshop" in kept
    assert "reader" in kept
    for secret in (GUESS, code, "a-refresh-token", SECRET, base64.b64encode(f"bookshop:{GUESS}".encode()).decode()):
        assert secret not in kept


def signing_in(client: httpx.Client, name: str, password: str) -> httpx.Response:
    client.get("/accounts/login")
    form = {"username": name, "password": password, "csrfmiddlewaretoken": client.cookies["csrftoken"]}
    return client.post("/accounts/login", data=form)


@pytest.fixture
def jane(db: None) -> User:
    return User.objects.create_user("jane", password="persuasion")


def test_who_guesses_passwords_must_wait(api: httpx.Client, jane: User) -> None:
    statuses = [signing_in(api, "jane", GUESS).status_code for _ in range(6)]
    answer = signing_in(api, "jane", "persuasion")
    assert statuses[:4] == [200] * 4
    assert statuses[5] == 429
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "300")
    with elsewhere() as other:
        assert signing_in(other, "jane", "persuasion").status_code == 302


def test_another_person_at_the_same_address_signs_in(api: httpx.Client, jane: User) -> None:
    User.objects.create_user("emma", password="hartfield")
    for _ in range(6):
        signing_in(api, "jane", GUESS)
    assert signing_in(api, "emma", "hartfield").status_code == 302


def test_who_remembers_in_time_begins_anew(api: httpx.Client, jane: User) -> None:
    for _ in range(3):
        statuses = [signing_in(api, "jane", GUESS).status_code for _ in range(4)]
        assert [*statuses, signing_in(api, "jane", "persuasion").status_code] == [200, 200, 200, 200, 302]
        api.cookies.clear()


def test_a_name_of_nobody_waits_too(api: httpx.Client) -> None:
    statuses = [signing_in(api, "nobody", GUESS).status_code for _ in range(6)]
    assert statuses[5] == 429

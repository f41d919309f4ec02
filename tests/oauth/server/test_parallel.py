"""Many clients of the authorization server at once, against the served library."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import httpx
import pytest
from django.conf import settings
from oauth2_provider.models import Application

from tests.support.concurrency import at_once
from tests.support.oauth_flows import (
    CHALLENGED,
    SECRET,
    VERIFIER,
    bearer,
    consent,
    redemption,
    refreshing,
    request_for,
    told,
)
from tests.support.serving import Service

ONE, MANY = 200, 12
# Made in the service's database, which is none of this process's.
PREPARATION = """
import httpx
from tests.support import oauth_flows as flows
client, user = httpx.Client(), flows.librarian("in-parallel")
flows.confidential_app("parallel-bookshop"), flows.public_app("parallel-shelf")
flows.sign_in(client, user)
print(client.cookies[settings.SESSION_COOKIE_NAME])
"""
BOOKSHOP = Application(client_id="parallel-bookshop", client_type="confidential")
SHELF = Application(client_id="parallel-shelf", client_type="public")


class Person(NamedTuple):
    """Someone who is signed in at the service, and consents."""

    service: Service
    client: httpx.Client

    def code(self, application: Application) -> str:
        return told(consent(self.client, request_for(application, **CHALLENGED)))["code"]

    def redemption(self, application: Application) -> dict[str, str]:
        return redemption(application, self.code(application), code_verifier=VERIFIER)

    def tokens(self, application: Application) -> dict[str, Any]:
        answer = self.client.post("/oauth/token", data=self.redemption(application))
        assert answer.status_code == 200, answer.text
        given: dict[str, Any] = answer.json()
        return given

    def good(self, access_token: str) -> bool:
        """As the database has it."""
        form = {"client_id": BOOKSHOP.client_id, "client_secret": SECRET, "token": access_token}
        active: bool = self.client.post("/oauth/introspect", data=form).json()["active"]
        return active

    def refreshed(self, application: Application, token: str) -> httpx.Response:
        return self.client.post("/oauth/refresh", data=refreshing(application, token))


@pytest.fixture(scope="module")
def person(service: Service) -> Iterator[Person]:
    call = [sys.executable, "manage.py", "shell", "-c", f"from django.conf import settings{PREPARATION}"]
    environment = os.environ | {"DATABASE_URL": service.database_url}
    made = subprocess.run(call, env=environment, check=True, capture_output=True, text=True)
    with service.client() as client:
        client.cookies.set(settings.SESSION_COOKIE_NAME, made.stdout.split()[-1])
        yield Person(service, client)


def post(client: httpx.Client, address: str, form: dict[str, str]) -> httpx.Response:
    return client.post(address, data=form)


def outcomes(answers: list[httpx.Response]) -> Counter[tuple[int, str | None]]:
    return Counter((answer.status_code, answer.json().get("error")) for answer in answers)


@pytest.mark.parametrize("application", [BOOKSHOP, SHELF], ids=["confidential", "public"])
def test_one_of_many_redemptions_of_one_code_succeeds(person: Person, application: Application) -> None:
    for _ in range(2):
        form = person.redemption(application)
        answers = at_once(person.service, [partial(post, address="/oauth/token", form=form)] * MANY)
        assert outcomes(answers) == {(200, None): 1, (400, "invalid_grant"): MANY - 1}
        [given] = [answer.json() for answer in answers if answer.status_code == ONE]
        # The others were replays, which end what it was redeemed for.
        assert not person.good(given["access_token"])
        assert person.refreshed(application, given["refresh_token"]).status_code == 400


def test_many_codes_are_redeemed_at_once(person: Person) -> None:
    forms = [person.redemption(application) for application in (BOOKSHOP, SHELF) * (MANY // 2)]
    answers = at_once(person.service, [partial(post, address="/oauth/token", form=form) for form in forms])
    assert outcomes(answers) == {(200, None): MANY}
    assert all(person.good(answer.json()["access_token"]) for answer in answers)


def test_one_of_many_refreshes_of_a_rotating_token_succeeds(person: Person) -> None:
    for _ in range(2):
        form = refreshing(SHELF, person.tokens(SHELF)["refresh_token"])
        answers = at_once(person.service, [partial(post, address="/oauth/refresh", form=form)] * MANY)
        assert outcomes(answers) == {(200, None): 1, (400, "invalid_grant"): MANY - 1}
        [given] = [answer.json() for answer in answers if answer.status_code == ONE]
        # The others were reuse, which ends the family.
        assert not person.good(given["access_token"])
        assert person.refreshed(SHELF, given["refresh_token"]).status_code == 400


def test_all_refreshes_of_a_token_that_is_kept_succeed(person: Person) -> None:
    for _ in range(3):
        first = person.tokens(BOOKSHOP)
        form = refreshing(BOOKSHOP, first["refresh_token"])
        answers = at_once(person.service, [partial(post, address="/oauth/refresh", form=form)] * MANY)
        assert outcomes(answers) == {(200, None): MANY}
        given = {answer.json()["access_token"] for answer in answers} | {first["access_token"]}
        assert len(given) == MANY + 1
        assert all(person.good(token) for token in given)
        assert person.refreshed(BOOKSHOP, first["refresh_token"]).status_code == 200


def test_nothing_survives_a_replay_while_refreshing(person: Person) -> None:
    for _ in range(3):
        replay = person.redemption(BOOKSHOP)
        first = person.client.post("/oauth/token", data=replay).json()
        refresh = partial(post, address="/oauth/refresh", form=refreshing(BOOKSHOP, first["refresh_token"]))
        replayed, *answers = at_once(
            person.service, [partial(post, address="/oauth/token", form=replay), *[refresh] * (MANY - 1)]
        )
        assert outcomes([replayed]) == {(400, "invalid_grant"): 1}
        assert outcomes(answers).keys() <= {(200, None), (400, "invalid_grant")}
        given = [answer.json()["access_token"] for answer in answers if answer.status_code == ONE]
        assert not any(person.good(token) for token in [first["access_token"], *given])
        assert person.refreshed(BOOKSHOP, first["refresh_token"]).status_code == 400


def test_nothing_survives_a_revocation_while_refreshing(person: Person) -> None:
    first = person.tokens(BOOKSHOP)
    form = {"client_id": BOOKSHOP.client_id, "client_secret": SECRET, "token": first["access_token"]}
    revoke = partial(post, address="/oauth/revoke", form=form)
    refresh = partial(post, address="/oauth/refresh", form=refreshing(BOOKSHOP, first["refresh_token"]))
    answers = at_once(person.service, [*[revoke] * 4, *[refresh] * (MANY - 4)])
    assert [answer.status_code for answer in answers[:4]] == [200] * 4
    assert outcomes(answers[4:]).keys() <= {(200, None), (400, "invalid_grant")}
    given = [answer.json()["access_token"] for answer in answers[4:] if answer.status_code == ONE]
    assert not any(person.good(token) for token in [first["access_token"], *given])
    assert person.refreshed(BOOKSHOP, first["refresh_token"]).status_code == 400


def test_a_token_is_good_in_every_process(person: Person) -> None:
    """None of which has seen it before."""
    headers = bearer(person.tokens(BOOKSHOP)["access_token"])
    answers = at_once(person.service, [lambda client: client.get("/oauth/resource", headers=headers)] * MANY)
    assert {answer.json()["scope"] for answer in answers} == {"read write"}


def test_nothing_of_it_is_an_event_of_ours_to_fail_at(person: Person) -> None:
    log = person.service.log.read_text()
    assert "Internal Server Error: /oauth" not in log

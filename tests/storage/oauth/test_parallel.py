"""Many clients use the authorization server of a served library at the same time."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import httpx
import pytest
from django.conf import settings
from oauth2_provider.models import Application

from tests.support.concurrency import run_concurrently
from tests.support.oauth_flows import (
    CHALLENGE_PARAMETERS,
    SECRET,
    VERIFIER,
    build_authorization_request,
    build_code_request,
    build_refresh_request,
    parse_redirect,
    submit_consent,
)
from tests.support.server import Service, run_in_shell

SUCCESS, CLIENT_COUNT = 200, 12
# Runs in a process that uses the database of the service.
PREPARATION = """
import httpx
from tests.support import oauth_flows as flows
client, user = httpx.Client(), flows.create_librarian("in-parallel")
flows.create_confidential_app("parallel-bookshop"), flows.create_public_app("parallel-shelf")
flows.sign_in(client, user)
print(client.cookies[settings.SESSION_COOKIE_NAME])
"""
BOOKSHOP = Application(client_id="parallel-bookshop", client_type="confidential")
SHELF = Application(client_id="parallel-shelf", client_type="public")


class SignedInUser(NamedTuple):
    """A user who is signed in at the service and consents to each request."""

    service: Service
    client: httpx.Client

    def obtain_code(self, application: Application) -> str:
        return parse_redirect(
            submit_consent(self.client, build_authorization_request(application, **CHALLENGE_PARAMETERS))
        )["code"]

    def build_token_request(self, application: Application) -> dict[str, str]:
        return build_code_request(application, self.obtain_code(application), code_verifier=VERIFIER)

    def obtain_tokens(self, application: Application) -> dict[str, Any]:
        response = self.client.post("/oauth/token", data=self.build_token_request(application))
        assert response.status_code == 200, response.text
        tokens: dict[str, Any] = response.json()
        return tokens

    def is_active(self, access_token: str) -> bool:
        """Tells what introspection says, which reads the database."""
        form = {"client_id": BOOKSHOP.client_id, "client_secret": SECRET, "token": access_token}
        active: bool = self.client.post("/oauth/introspect", data=form).json()["active"]
        return active

    def refresh(self, application: Application, token: str) -> httpx.Response:
        return self.client.post("/oauth/refresh", data=build_refresh_request(application, token))


@pytest.fixture(scope="module")
def person(service: Service) -> Iterator[SignedInUser]:
    printed = run_in_shell(service.database_url, f"from django.conf import settings{PREPARATION}")
    with service.open_client() as client:
        client.cookies.set(settings.SESSION_COOKIE_NAME, printed.split()[-1])
        yield SignedInUser(service, client)


def post(client: httpx.Client, address: str, form: dict[str, str]) -> httpx.Response:
    return client.post(address, data=form)


def count_outcomes(responses: list[httpx.Response]) -> Counter[tuple[int, str | None]]:
    return Counter((response.status_code, response.json().get("error")) for response in responses)


def test_one_of_many_redemptions_of_one_code_succeeds(person: SignedInUser) -> None:
    form = person.build_token_request(SHELF)
    responses = run_concurrently(person.service, [partial(post, address="/oauth/token", form=form)] * CLIENT_COUNT)
    assert count_outcomes(responses) == {(200, None): 1, (400, "invalid_grant"): CLIENT_COUNT - 1}
    [tokens] = [response.json() for response in responses if response.status_code == SUCCESS]
    # The other requests were replays of the code, which end its grant.
    assert not person.is_active(tokens["access_token"])
    assert person.refresh(SHELF, tokens["refresh_token"]).status_code == 400


def test_many_codes_are_redeemed_at_the_same_time(person: SignedInUser) -> None:
    forms = [person.build_token_request(application) for application in (BOOKSHOP, SHELF) * (CLIENT_COUNT // 2)]
    responses = run_concurrently(person.service, [partial(post, address="/oauth/token", form=form) for form in forms])
    assert count_outcomes(responses) == {(200, None): CLIENT_COUNT}
    assert all(person.is_active(response.json()["access_token"]) for response in responses)


def test_one_of_many_refreshes_of_a_rotating_token_succeeds(person: SignedInUser) -> None:
    form = build_refresh_request(SHELF, person.obtain_tokens(SHELF)["refresh_token"])
    responses = run_concurrently(person.service, [partial(post, address="/oauth/refresh", form=form)] * CLIENT_COUNT)
    assert count_outcomes(responses) == {(200, None): 1, (400, "invalid_grant"): CLIENT_COUNT - 1}
    [tokens] = [response.json() for response in responses if response.status_code == SUCCESS]
    # The other requests reused the token, which ends its grant.
    assert not person.is_active(tokens["access_token"])
    assert person.refresh(SHELF, tokens["refresh_token"]).status_code == 400


def test_all_refreshes_of_a_token_that_does_not_rotate_succeed(person: SignedInUser) -> None:
    first = person.obtain_tokens(BOOKSHOP)
    form = build_refresh_request(BOOKSHOP, first["refresh_token"])
    responses = run_concurrently(person.service, [partial(post, address="/oauth/refresh", form=form)] * CLIENT_COUNT)
    assert count_outcomes(responses) == {(200, None): CLIENT_COUNT}
    tokens = {response.json()["access_token"] for response in responses} | {first["access_token"]}
    assert len(tokens) == CLIENT_COUNT + 1
    assert all(person.is_active(token) for token in tokens)
    assert person.refresh(BOOKSHOP, first["refresh_token"]).status_code == 200


def test_nothing_survives_a_replay_while_refreshing(person: SignedInUser) -> None:
    replay = person.build_token_request(BOOKSHOP)
    first = person.client.post("/oauth/token", data=replay).json()
    refresh = partial(post, address="/oauth/refresh", form=build_refresh_request(BOOKSHOP, first["refresh_token"]))
    replayed, *responses = run_concurrently(
        person.service, [partial(post, address="/oauth/token", form=replay), *[refresh] * (CLIENT_COUNT - 1)]
    )
    assert count_outcomes([replayed]) == {(400, "invalid_grant"): 1}
    assert count_outcomes(responses).keys() <= {(200, None), (400, "invalid_grant")}
    tokens = [response.json()["access_token"] for response in responses if response.status_code == SUCCESS]
    assert not any(person.is_active(token) for token in [first["access_token"], *tokens])
    assert person.refresh(BOOKSHOP, first["refresh_token"]).status_code == 400


def test_nothing_survives_a_revocation_while_refreshing(person: SignedInUser) -> None:
    first = person.obtain_tokens(BOOKSHOP)
    form = {"client_id": BOOKSHOP.client_id, "client_secret": SECRET, "token": first["access_token"]}
    revoke = partial(post, address="/oauth/revoke", form=form)
    refresh = partial(post, address="/oauth/refresh", form=build_refresh_request(BOOKSHOP, first["refresh_token"]))
    responses = run_concurrently(person.service, [*[revoke] * 4, *[refresh] * (CLIENT_COUNT - 4)])
    assert [response.status_code for response in responses[:4]] == [200] * 4
    assert count_outcomes(responses[4:]).keys() <= {(200, None), (400, "invalid_grant")}
    tokens = [response.json()["access_token"] for response in responses[4:] if response.status_code == SUCCESS]
    assert not any(person.is_active(token) for token in [first["access_token"], *tokens])
    assert person.refresh(BOOKSHOP, first["refresh_token"]).status_code == 400


def test_none_of_these_requests_failed_in_the_server(person: SignedInUser) -> None:
    log = person.service.log.read_text()
    assert "Internal Server Error: /oauth" not in log

"""Two clients send the same code or token to the authorization server at the same time."""

import httpx
import pytest
from django.db import transaction

from oauth.models import Authorization
from tests.support.concurrency import start_concurrently
from tests.support.oauth_flows import (
    SECRET,
    build_code_request,
    build_refresh_request,
    create_confidential_app,
    create_public_app,
    create_reader,
    obtain_code,
)

pytestmark = pytest.mark.usefixtures("transactional_db")
TOKEN, REFRESH, REVOKE = "/oauth/token", "/oauth/refresh", "/oauth/revoke"
Request = tuple[str, dict[str, str]]


class Grant:
    """A reader's grant to an app, and the requests that it allows."""

    def __init__(self, api: httpx.Client, *, is_public: bool) -> None:
        self.api = api
        self.app = create_public_app() if is_public else create_confidential_app()
        self.redemption: Request = TOKEN, build_code_request(self.app, obtain_code(api, create_reader(), self.app))

    def redeem(self) -> Request:
        """Redeems the code. Returns the request that refreshes its token."""
        tokens = self.send(self.redemption).json()
        return REFRESH, build_refresh_request(self.app, tokens["refresh_token"])

    def send(self, request: Request) -> httpx.Response:
        return self.api.post(request[0], data=request[1])

    def send_both(self, first: Request, second: Request) -> list[int]:
        """Sends the second while the transaction of the first goes on. Returns both statuses."""
        with transaction.atomic():
            response = self.send(first)
            later = start_concurrently(lambda: self.send(second))
        return [response.status_code, later.result().status_code]


def has_ended() -> bool:
    return not Authorization.objects.filter(ended_at=None).exists()


@pytest.fixture
def public(api: httpx.Client) -> Grant:
    return Grant(api, is_public=True)


@pytest.fixture
def confidential(api: httpx.Client) -> Grant:
    return Grant(api, is_public=False)


def test_a_code_is_redeemed_once_and_its_replay_ends_the_grant(public: Grant) -> None:
    assert public.send_both(public.redemption, public.redemption) == [200, 400]
    assert has_ended()


def test_a_token_that_rotates_is_refreshed_once_and_its_reuse_ends_the_grant(public: Grant) -> None:
    refresh = public.redeem()
    assert public.send_both(refresh, refresh) == [200, 400]
    assert has_ended()


def test_all_refreshes_of_a_token_that_does_not_rotate_succeed(confidential: Grant) -> None:
    refresh = confidential.redeem()
    assert confidential.send_both(refresh, refresh) == [200, 200]
    assert confidential.send(refresh).status_code == 200


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("end", [TOKEN, REVOKE])
def test_nothing_survives_a_replay_or_a_revocation_while_refreshing(
    confidential: Grant, end: str, is_first: bool
) -> None:
    refresh = confidential.redeem()
    form = {"client_id": confidential.app.client_id, "client_secret": SECRET, "token": refresh[1]["refresh_token"]}
    request, status = (confidential.redemption, 400) if end == TOKEN else ((REVOKE, form), 200)
    statuses = confidential.send_both(*((refresh, request) if is_first else (request, refresh)))
    # On PostgreSQL a refresh that waits gets tokens that are good for nothing.
    assert statuses[int(is_first)] == status
    assert has_ended()
    assert confidential.send(refresh).status_code == 400

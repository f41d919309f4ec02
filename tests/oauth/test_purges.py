"""What is deleted once it is over, and what must stay."""

from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from axes.models import AccessAttempt
from django.core.management import call_command
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, Grant, RefreshToken

from library_site.db import purges
from library_site.db.purges import purge
from oauth import api_keys
from oauth.models import APIKey, Authorization, ChangedRights
from oauth.purges import iter_expired
from oauth.tokens import revocations
from tests.support import oauth_flows

pytestmark = pytest.mark.django_db

READ = frozenset({"read"})
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def cleared(now: datetime) -> dict[str, int]:
    """The kinds of which something was deleted."""
    return {kind: count for kind, count in purge(iter_expired(now)).items() if count}


def refreshed(api: httpx.Client, app: Application, tokens: dict[str, Any]) -> httpx.Response:
    return api.post("/oauth/refresh", data=oauth_flows.refreshing(app, tokens["refresh_token"]))


def test_what_is_in_use_stays(api: httpx.Client) -> None:
    app, librarian = oauth_flows.confidential_app(), oauth_flows.librarian()
    tokens = oauth_flows.tokens_for(api, librarian, app)
    code = oauth_flows.code_for(api, librarian, app)
    _, key = api_keys.create_key(librarian, "import", READ, timezone.now())
    ChangedRights.objects.all().delete()

    assert cleared(timezone.now()) == {}

    assert refreshed(api, app, tokens).status_code == 200
    assert api.post("/oauth/token", data=oauth_flows.redemption(app, code)).status_code == 200
    assert api.get("/api/books", headers={"X-API-Key": key}).status_code == 200


def test_codes_go_when_nobody_comes_late_with_them(api: httpx.Client) -> None:
    oauth_flows.code_for(api, oauth_flows.librarian(), oauth_flows.confidential_app())
    expires = Grant.objects.get().expires
    ChangedRights.objects.all().delete()
    assert cleared(expires + HOUR) == {}
    assert cleared(expires + revocations.RETENTION) == {"codes": 1}


def test_an_app_may_refresh_for_a_month_after_its_token_expired(api: httpx.Client) -> None:
    app = oauth_flows.confidential_app()
    tokens = oauth_flows.tokens_for(api, oauth_flows.reader(), app)
    expires = AccessToken.objects.get().expires
    purge(iter_expired(expires + 30 * DAY - SECOND))
    assert refreshed(api, app, tokens).status_code == 200


def test_tokens_that_nobody_used_for_a_month_go(api: httpx.Client) -> None:
    oauth_flows.tokens_for(api, oauth_flows.reader(), oauth_flows.confidential_app())
    expires = AccessToken.objects.get().expires
    counts = purge(iter_expired(expires + 30 * DAY))
    assert (counts["refresh tokens"], counts["access tokens"], counts["authorizations"]) == (1, 1, 0)


def test_a_replaced_token_still_tells_of_its_theft(api: httpx.Client) -> None:
    app = oauth_flows.public_app()
    tokens = oauth_flows.tokens_for(api, oauth_flows.reader(), app)
    newer = refreshed(api, app, tokens).json()

    purge(iter_expired(timezone.now() + 29 * DAY))

    assert refreshed(api, app, tokens).status_code == 400
    assert refreshed(api, app, newer).status_code == 400
    assert not Authorization.objects.filter(ended_at=None).exists()


def test_replaced_tokens_go_after_a_month(api: httpx.Client) -> None:
    app = oauth_flows.public_app()
    refreshed(api, app, oauth_flows.tokens_for(api, oauth_flows.reader(), app))
    replaced = RefreshToken.objects.exclude(revoked=None)
    purge(iter_expired(timezone.now() + 30 * DAY))
    assert not replaced.exists()
    assert RefreshToken.objects.count() == 1


def test_a_replayed_code_still_ends_what_it_was_redeemed_for(api: httpx.Client) -> None:
    app = oauth_flows.confidential_app()
    form = oauth_flows.redemption(app, oauth_flows.code_for(api, oauth_flows.reader(), app))
    tokens = api.post("/oauth/token", data=form).json()
    purge(iter_expired(timezone.now() + DAY))
    assert api.post("/oauth/token", data=form).status_code == 400
    assert refreshed(api, app, tokens).status_code == 400


def test_ended_access_is_remembered_as_long_as_its_tokens(api: httpx.Client) -> None:
    tokens = oauth_flows.tokens_for(api, oauth_flows.reader(), oauth_flows.confidential_app())
    ended_at = timezone.now()
    revocations.revoke_authorizations(Authorization.objects.all(), ended_at)
    assert purge(iter_expired(ended_at + revocations.RETENTION - SECOND))["authorizations"] == 0
    assert api.get("/api/books", headers=oauth_flows.bearer(tokens["access_token"])).status_code == 401
    assert purge(iter_expired(ended_at + revocations.RETENTION))["authorizations"] == 1
    assert not AccessToken.objects.exists()
    assert not RefreshToken.objects.exists()


def test_access_that_is_too_old_goes_with_its_tokens(api: httpx.Client) -> None:
    oauth_flows.tokens_for(api, oauth_flows.reader(), oauth_flows.confidential_app())
    created_at = Authorization.objects.get().created_at
    assert purge(iter_expired(created_at + 90 * DAY))["authorizations"] == 0
    assert purge(iter_expired(created_at + 90 * DAY + revocations.RETENTION))["authorizations"] == 1
    assert not RefreshToken.objects.exists()


def test_changed_rights_are_remembered_as_long_as_tokens_from_before() -> None:
    now = timezone.now()
    ChangedRights.objects.create(user_id=1, scopes="read", changed_at=now)
    assert cleared(now + HOUR) == {}
    assert cleared(now + revocations.RETENTION) == {"changed rights": 1}


@pytest.mark.parametrize("how", ["expires_at", "revoked_at"])
def test_keys_that_are_over_are_shown_for_a_month(how: str) -> None:
    now = timezone.now()
    key, _ = api_keys.create_key(oauth_flows.reader(), "import", READ, now)
    APIKey.objects.filter(pk=key.pk).update(**{how: now})
    assert cleared(now + 30 * DAY - SECOND) == {}
    assert cleared(now + 30 * DAY) == {"API keys": 1}


def test_access_stays_as_long_as_keys_made_by_it(api: httpx.Client) -> None:
    token = oauth_flows.tokens_for(api, oauth_flows.reader(), oauth_flows.confidential_app())["access_token"]
    api.post("/api/v2/api-keys", json={"name": "import", "scopes": "read"}, headers=oauth_flows.bearer(token))
    now = timezone.now()
    revocations.revoke_authorizations(Authorization.objects.all(), now)
    purge(iter_expired(now + 29 * DAY))
    assert APIKey.objects.get().authorization is not None
    counts = purge(iter_expired(now + 30 * DAY))
    assert (counts["API keys"], counts["authorizations"]) == (1, 1)


def test_failed_sign_ins_go_when_they_count_no_more(api: httpx.Client) -> None:
    for _ in range(2):
        api.post("/oauth/introspect", data={"token": "any"}, auth=("no such app", "guessed"))
    tried_at = AccessAttempt.objects.get().attempt_time
    assert cleared(tried_at + timedelta(minutes=4)) == {}
    assert cleared(tried_at + timedelta(minutes=5)) == {"failed sign-ins": 1}


def test_more_than_one_batch_goes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purges, "PURGE_BATCH", 3)
    now = timezone.now()
    ChangedRights.objects.bulk_create(ChangedRights(number, "", now) for number in range(1, 11))
    assert cleared(now + DAY) == {"changed rights": 10}


def test_the_command_tells_how_many_of_each_kind(capsys: pytest.CaptureFixture[str]) -> None:
    ChangedRights.objects.create(user_id=1, scopes="read", changed_at=timezone.now() - DAY)
    call_command("clear_expired")
    assert capsys.readouterr().out.splitlines() == [
        "0 kept answers deleted.",
        "0 codes deleted.",
        "0 refresh tokens deleted.",
        "0 access tokens deleted.",
        "0 API keys deleted.",
        "0 authorizations deleted.",
        "1 changed rights deleted.",
        "0 failed sign-ins deleted.",
        "0 attempts deleted.",
        "0 deliveries deleted.",
        "0 events deleted.",
        "0 received events deleted.",
        "0 endpoints deleted.",
    ]

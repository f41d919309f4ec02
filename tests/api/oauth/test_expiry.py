"""Expired rows are deleted, and rows that still matter stay."""

from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from axes.models import AccessAttempt
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, Grant, RefreshToken

from library_site.jobs import expiry
from library_site.jobs.expiry import delete_by_kind
from oauth import api_keys
from oauth.expiry import iter_expired
from oauth.models import APIKey, Authorization, ChangedRights
from oauth.tokens import revocations
from tests.support.oauth_flows import (
    build_bearer_header,
    build_code_request,
    build_refresh_request,
    create_confidential_app,
    create_librarian,
    create_public_app,
    create_reader,
    obtain_code,
    obtain_tokens,
)

pytestmark = pytest.mark.django_db

READ = frozenset({"read"})
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def delete_expired_rows(now: datetime) -> dict[str, int]:
    """Deletes what has expired and returns the counts that are not 0, by kind."""
    return {kind: count for kind, count in delete_by_kind(iter_expired(now)).items() if count}


def refresh(api: httpx.Client, app: Application, tokens: dict[str, Any]) -> httpx.Response:
    return api.post("/oauth/refresh", data=build_refresh_request(app, tokens["refresh_token"]))


def test_rows_in_use_stay(api: httpx.Client) -> None:
    app, librarian = create_confidential_app(), create_librarian()
    tokens = obtain_tokens(api, librarian, app)
    code = obtain_code(api, librarian, app)
    _, key = api_keys.create_key(librarian, "import", READ, timezone.now())
    ChangedRights.objects.all().delete()

    assert delete_expired_rows(timezone.now()) == {}

    assert refresh(api, app, tokens).status_code == 200
    assert api.post("/oauth/token", data=build_code_request(app, code)).status_code == 200
    assert api.get("/api/books", headers={"X-API-Key": key}).status_code == 200


def test_codes_are_deleted_after_the_time_in_which_a_replay_is_noticed(api: httpx.Client) -> None:
    obtain_code(api, create_librarian(), create_confidential_app())
    expires = Grant.objects.get().expires
    ChangedRights.objects.all().delete()
    assert delete_expired_rows(expires + HOUR) == {}
    assert delete_expired_rows(expires + revocations.RETENTION) == {"codes": 1}


def test_an_app_may_refresh_for_a_month_after_its_token_expired(api: httpx.Client) -> None:
    app = create_confidential_app()
    tokens = obtain_tokens(api, create_reader(), app)
    expires = AccessToken.objects.get().expires
    assert delete_by_kind(iter_expired(expires + 30 * DAY - SECOND))["refresh tokens"] == 0
    counts = delete_by_kind(iter_expired(expires + 30 * DAY))
    assert (counts["refresh tokens"], counts["access tokens"], counts["authorizations"]) == (1, 1, 0)
    assert refresh(api, app, tokens).status_code == 400


def test_reuse_of_a_replaced_token_is_noticed_for_a_month(api: httpx.Client) -> None:
    app = create_public_app()
    tokens = obtain_tokens(api, create_reader(), app)
    second = refresh(api, app, tokens).json()
    delete_by_kind(iter_expired(timezone.now() + 29 * DAY))
    assert refresh(api, app, tokens).status_code == 400
    assert refresh(api, app, second).status_code == 400
    assert not Authorization.objects.filter(ended_at=None).exists()


def test_replaced_tokens_are_deleted_after_a_month(api: httpx.Client) -> None:
    app = create_public_app()
    refresh(api, app, obtain_tokens(api, create_reader(), app))
    delete_by_kind(iter_expired(timezone.now() + 30 * DAY))
    assert RefreshToken.objects.get().revoked is None


def test_ended_access_is_stored_as_long_as_its_tokens_are_valid(api: httpx.Client) -> None:
    tokens = obtain_tokens(api, create_reader(), create_confidential_app())
    ended_at = timezone.now()
    revocations.revoke_authorizations(Authorization.objects.all(), ended_at)
    assert delete_by_kind(iter_expired(ended_at + revocations.RETENTION - SECOND))["authorizations"] == 0
    assert api.get("/api/books", headers=build_bearer_header(tokens["access_token"])).status_code == 401
    assert delete_by_kind(iter_expired(ended_at + revocations.RETENTION))["authorizations"] == 1
    assert not AccessToken.objects.exists()
    assert not RefreshToken.objects.exists()


def test_access_that_is_too_old_is_deleted_with_its_tokens(api: httpx.Client) -> None:
    obtain_tokens(api, create_reader(), create_confidential_app())
    created_at = Authorization.objects.get().created_at
    assert delete_by_kind(iter_expired(created_at + 90 * DAY))["authorizations"] == 0
    assert delete_by_kind(iter_expired(created_at + 90 * DAY + revocations.RETENTION))["authorizations"] == 1
    assert not RefreshToken.objects.exists()


def test_changed_rights_are_stored_as_long_as_older_tokens_are_valid() -> None:
    now = timezone.now()
    ChangedRights.objects.create(user_id=1, scopes="read", changed_at=now)
    assert delete_expired_rows(now + HOUR) == {}
    assert delete_expired_rows(now + revocations.RETENTION) == {"changed rights": 1}


@pytest.mark.parametrize("field", ["expires_at", "revoked_at"])
def test_ended_keys_are_stored_for_a_month(field: str) -> None:
    now = timezone.now()
    key, _ = api_keys.create_key(create_reader(), "import", READ, now)
    APIKey.objects.filter(pk=key.pk).update(**{field: now})
    assert delete_expired_rows(now + 30 * DAY - SECOND) == {}
    assert delete_expired_rows(now + 30 * DAY) == {"API keys": 1}


def test_access_stays_as_long_as_the_keys_made_with_it(api: httpx.Client) -> None:
    tokens = obtain_tokens(api, create_librarian("librarian", "Developers"), create_confidential_app())
    headers = build_bearer_header(tokens["access_token"])
    api.post("/api/v2/api-keys", json={"name": "import", "scopes": "read"}, headers=headers)
    now = timezone.now()
    revocations.revoke_authorizations(Authorization.objects.all(), now)
    delete_by_kind(iter_expired(now + 29 * DAY))
    assert APIKey.objects.get().authorization is not None
    counts = delete_by_kind(iter_expired(now + 30 * DAY))
    assert (counts["API keys"], counts["authorizations"]) == (1, 1)


def test_failed_sign_ins_are_deleted_when_they_no_longer_count(api: httpx.Client) -> None:
    for _ in range(2):
        api.post("/oauth/introspect", data={"token": "any"}, auth=("no such app", "guessed"))
    attempted_at = AccessAttempt.objects.get().attempt_time
    assert delete_expired_rows(attempted_at + timedelta(minutes=4)) == {}
    assert delete_expired_rows(attempted_at + timedelta(minutes=5)) == {"failed sign-ins": 1}


def test_one_expiry_deletes_more_than_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "EXPIRY_BATCH", 3)
    now = timezone.now()
    ChangedRights.objects.bulk_create(ChangedRights(number, "", now) for number in range(1, 11))
    assert delete_expired_rows(now + DAY) == {"changed rights": 10}

"""Few passwords are hashed at the same time; all others soon learn that they must try again."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import httpx
import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from oauth2_provider.models import Application
from pytest_django import Settings

from oauth.passwords import hashers
from oauth.passwords.hashers import HASH_LIMITER, BoundedPBKDF2Hasher, HashingBusy, HashLimiter
from tests.support.oauth_flows import create_confidential_app, parse_oauth_error, post_form, submit_sign_in
from tests.support.waiting import wait_until


class FastHasher(BoundedPBKDF2Hasher):
    iterations = 1


@pytest.fixture
def full_limiter(db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> HashLimiter:
    """The limiter of a process that makes one hash at a time, and in which nobody waits."""
    settings.PASSWORD_HASHERS = [f"{__name__}.{FastHasher.__name__}", *settings.PASSWORD_HASHERS[-1:]]
    User.objects.create_user("jane", password="persuasion")
    limiter = HashLimiter(max_hashing=1, max_threads=1, max_wait=0)
    monkeypatch.setattr(hashers, "HASH_LIMITER", limiter)
    return limiter


@pytest.mark.parametrize("page", ["/accounts/login", "/admin/login/"])
@pytest.mark.parametrize("name", ["jane", "nobody"])
def test_a_person_whose_password_cannot_be_hashed_is_asked_to_come_back(
    api: httpx.Client, full_limiter: HashLimiter, page: str, name: str
) -> None:
    with full_limiter.slot():
        response = submit_sign_in(api, name, "persuasion", page)
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    assert response.headers["Content-Type"].startswith("text/html")
    assert "Try again in a few seconds" in response.text


def test_a_password_that_was_not_evaluated_does_not_count(api: httpx.Client, full_limiter: HashLimiter) -> None:
    with full_limiter.slot():
        assert [submit_sign_in(api, "jane", "persuasion").status_code for _ in range(6)] == [503] * 6
    assert AccessAttempt.objects.get().failures_since_start == 0
    assert submit_sign_in(api, "jane", "persuasion").status_code == 302
    with full_limiter.slot():
        change = {"old_password": "persuasion"}
        assert [post_form(api, "/accounts/password", change).status_code for _ in range(6)] == [503] * 6


def test_a_secret_that_is_no_generated_one_is_limited_too(api: httpx.Client, full_limiter: HashLimiter) -> None:
    """Django hashes with the hasher of people where it cannot read what is stored."""
    bookshop = create_confidential_app()
    Application.objects.update(client_secret="no hash")
    form = {"grant_type": "refresh_token", "refresh_token": "x", "client_id": bookshop.client_id, "client_secret": "s"}
    with full_limiter.slot():
        response = api.post("/oauth/token", data=form)
    assert parse_oauth_error(response) == (503, "temporarily_unavailable")
    assert response.headers["Retry-After"] == "5"


def test_a_process_hashes_two_passwords_at_the_same_time() -> None:
    acquired = [HASH_LIMITER.hashing.acquire(blocking=False) for _ in range(3)]
    HASH_LIMITER.hashing.release(2)
    assert acquired == [True, True, False]


def test_half_of_the_threads_neither_hash_nor_wait(settings: Settings) -> None:
    threads = [HASH_LIMITER.threads.acquire(blocking=False) for _ in range(settings.WEB_THREADS)]
    HASH_LIMITER.threads.release(settings.WEB_THREADS // 2)
    assert threads.count(True) == settings.WEB_THREADS // 2


def test_a_thread_waits_and_the_next_one_is_refused() -> None:
    limiter, is_hashing, may_end = HashLimiter(max_hashing=1, max_threads=2, max_wait=30), Event(), Event()

    def hash_until_told() -> None:
        with limiter.slot():
            is_hashing.set()
            may_end.wait(30)

    with ThreadPoolExecutor(2) as pool:
        threads = [pool.submit(hash_until_told) for _ in range(2)]
        is_hashing.wait(30)
        wait_until(lambda: limiter.threads._value == 0)
        with pytest.raises(HashingBusy), limiter.slot():
            raise AssertionError
        may_end.set()
    assert [thread.result() for thread in threads] == [None, None]


def test_a_thread_does_not_wait_longer_than_it_may() -> None:
    limiter, started_at = HashLimiter(max_hashing=1, max_threads=2, max_wait=0.01), time.monotonic()
    with limiter.slot(), pytest.raises(HashingBusy), limiter.slot():
        raise AssertionError
    assert time.monotonic() - started_at < 10
    with limiter.slot():
        assert not limiter.hashing.acquire(blocking=False)

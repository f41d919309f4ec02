"""The keys that sign access tokens are replaced while the library runs, and no token fails for it."""

import json
import logging
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from pytest_django import Settings

from oauth.tokens import access_tokens, jwks
from tests.support import oauth_flows
from tests.support.forged_tokens import forged, spoken

PRIVATE = ("d", "p", "q", "dp", "dq", "qi")


@pytest.fixture
def file(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A key file of the test's own, with its first key."""
    path = tmp_path / "keys" / "jwks.json"
    settings.OAUTH_JWKS_FILE = path
    for name, value in {"path": path, "seen": (), "keys": None}.items():
        monkeypatch.setattr(jwks.KEY_FILE, name, value)
    call_command("rotate_signing_key")
    return path


def kids(file: Path) -> list[str]:
    return [member["kid"] for member in stored(file)]


def stored(file: Path) -> list[dict[str, Any]]:
    members: list[dict[str, Any]] = json.loads(file.read_text())["keys"]
    return members


def published(api: httpx.Client) -> set[str]:
    return {key["kid"] for key in api.get("/.well-known/jwks.json").json()["keys"]}


def signer(token: str) -> Any:
    return spoken(token)[0]["kid"]


def works(api: httpx.Client, token: str) -> bool:
    return api.get("/oauth/resource", headers=oauth_flows.bearer(token)).status_code == 200


def test_a_new_key_signs_at_once_and_old_tokens_stay_good(api: httpx.Client, file: Path) -> None:
    reader, app = oauth_flows.reader(), oauth_flows.public_app()
    old = oauth_flows.tokens_for(api, reader, app)["access_token"]
    call_command("rotate_signing_key")
    new = oauth_flows.tokens_for(api, reader, app)["access_token"]
    assert [signer(new), signer(old)] == kids(file)
    assert works(api, old)
    assert works(api, new)
    assert published(api) == {signer(old), signer(new)}


def test_old_tokens_are_good_until_the_overlap_is_over(api: httpx.Client, file: Path) -> None:
    token = oauth_flows.tokens_for(api, oauth_flows.reader(), oauth_flows.public_app())["access_token"]
    now = int(time.time())
    jwks.rotate_key(file, now, overlap=60)
    assert access_tokens.verify_access_token(token, now + 59).client_id == "shelf"
    with pytest.raises(access_tokens.InvalidToken):
        access_tokens.verify_access_token(token, now + 60)
    assert signer(token) not in str(jwks.build_public_jwks(jwks.get_keys(), now + 60))


def test_a_key_outlives_its_last_token(api: httpx.Client, file: Path) -> None:
    token = oauth_flows.tokens_for(api, oauth_flows.reader(), oauth_flows.public_app())["access_token"]
    expires_at = access_tokens.verify_access_token(token, time.time()).exp
    call_command("rotate_signing_key")
    assert stored(file)[1]["exp"] >= expires_at


def test_keys_that_verify_nothing_leave_with_the_next_rotation(file: Path) -> None:
    first, now = kids(file)[0], int(time.time())
    second = jwks.rotate_key(file, now, overlap=60)
    assert kids(file) == [second, first]
    third = jwks.rotate_key(file, now + 60, overlap=60)
    assert kids(file) == [third, second]


def test_a_token_signed_by_a_key_of_another_machine_is_good(api: httpx.Client, file: Path) -> None:
    token = oauth_flows.tokens_for(api, oauth_flows.reader(), oauth_flows.public_app())["access_token"]
    jwks.rotate_key(file, int(time.time()), overlap=60)
    others = jwks.KeyFile(file).current().signing
    signed = forged(spoken(token)[1], others, kid=others.kid)
    assert works(api, signed)


def test_a_prepared_key_is_published_before_it_signs(api: httpx.Client, file: Path) -> None:
    (first,) = kids(file)
    call_command("rotate_signing_key", "--prepare")
    prepared = kids(file)[1]
    assert published(api) == {first, prepared}
    assert jwks.get_keys().signing.kid == first
    call_command("rotate_signing_key")
    assert jwks.get_keys().signing.kid == prepared
    assert kids(file) == [prepared, first]


def test_of_two_prepared_keys_each_has_its_turn(file: Path) -> None:
    (first,), now = kids(file), int(time.time())
    second, third = jwks.prepare_key(file, now), jwks.prepare_key(file, now)
    assert [jwks.rotate_key(file, now, overlap=60) for _ in range(2)] == [second, third]
    assert jwks.KeyFile(file).current().signing.kid == third
    assert set(kids(file)) == {first, second, third}


def test_what_is_published_signs_nothing(api: httpx.Client, file: Path) -> None:
    (key,) = api.get("/.well-known/jwks.json").json()["keys"]
    assert key.keys() == {"kty", "n", "e", "kid", "use", "alg"}


def test_only_its_owner_reads_the_file(file: Path) -> None:
    call_command("rotate_signing_key")
    assert [stat.S_IMODE(path.stat().st_mode) for path in sorted(file.parent.iterdir())] == [0o600, 0o600]
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_file_that_others_read_is_warned_of(file: Path) -> None:
    assert "oauth.W001" not in {message.id for message in run_checks()}
    file.chmod(0o640)
    assert "oauth.W001" in {message.id for message in run_checks()}


def test_rotations_at_the_same_time_lose_no_key(file: Path) -> None:
    first, now = kids(file)[0], int(time.time())
    with ThreadPoolExecutor(6) as threads:
        prepared = [threads.submit(jwks.prepare_key, file, now) for _ in range(3)]
        rotated = [threads.submit(jwks.rotate_key, file, now, 60) for _ in range(3)]
    made = {future.result() for future in [*prepared, *rotated]}
    assert {first, *made} == set(kids(file))
    assert len([member for member in stored(file) if not member.keys() & {"exp", "prepared"}]) == 1


@pytest.mark.parametrize("content", ["", "{", "[]", '{"keys": []}', '{"keys": [{"kid": "x", "kty": "RSA"}]}', None])
def test_a_broken_file_leaves_the_keys_as_they_were(
    api: httpx.Client, file: Path, content: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    token = oauth_flows.tokens_for(api, oauth_flows.reader(), oauth_flows.public_app())["access_token"]
    secrets = [stored(file)[0][name] for name in PRIVATE]
    file.unlink()
    if content is not None:
        file.write_text(content)
    with caplog.at_level(logging.ERROR):
        assert works(api, token)
        assert works(api, token)
    assert len(caplog.messages) == 1
    assert str(file) in caplog.text
    assert not [secret for secret in secrets if secret in caplog.text]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"keys": 1}', "\udcff"])
@pytest.mark.parametrize("how", [[], ["--prepare"], ["--if-missing"]])
def test_a_broken_file_is_no_place_for_a_new_key(file: Path, content: str, how: list[str]) -> None:
    file.write_text(content, errors="surrogateescape")
    with pytest.raises(CommandError, match="holds no JWKS"):
        call_command("rotate_signing_key", *how)
    assert file.read_text(errors="surrogateescape") == content


def test_without_a_key_the_library_does_not_start(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.unlink()
    monkeypatch.setattr(jwks.KEY_FILE, "keys", None)
    assert "oauth.E001" in {message.id for message in run_checks()}
    call_command("rotate_signing_key", "--if-missing")
    assert "oauth.E001" not in {message.id for message in run_checks()}


def test_a_key_that_signs_is_not_replaced_where_one_is_asked_for_if_missing(file: Path) -> None:
    before = file.read_bytes()
    call_command("rotate_signing_key", "--if-missing")
    assert file.read_bytes() == before


def test_a_key_that_only_waits_is_let_sign_where_none_does(file: Path) -> None:
    file.unlink()
    prepared = jwks.prepare_key(file, int(time.time()))
    call_command("rotate_signing_key", "--if-missing")
    assert jwks.KeyFile(file).current().signing.kid == prepared


def test_a_place_that_cannot_be_written_is_named(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings.OAUTH_JWKS_FILE = tmp_path / "file" / "jwks.json"
    with pytest.raises(CommandError, match=r"Not a directory|File exists"):
        call_command("rotate_signing_key")

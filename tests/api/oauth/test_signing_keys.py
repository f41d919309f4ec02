"""The keys that sign access tokens are replaced while the library runs, and no valid token fails."""

import json
import logging
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from joserfc.jwk import RSAKey
from pytest_django import Settings

from oauth.tokens import access_tokens, jwks
from tests.support.forged_tokens import build_claims, decode_token, forge_token
from tests.support.oauth_flows import create_public_app, create_reader, find_granted_scope, obtain_tokens

pytestmark = pytest.mark.filterwarnings("ignore:Key size should be >= 2048 bits")
PRIVATE_FIELDS = ("d", "p", "q", "dp", "dq", "qi")


@pytest.fixture(scope="module")
def small_keys() -> list[dict[str, Any]]:
    """To make and to read larger ones takes ten times as long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jwks, "KEY_BITS", 1024)
        return [jwks.generate_key(0) for _ in range(8)]


@pytest.fixture
def key_file(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, small_keys: list[dict[str, Any]]
) -> Path:
    """A new key file with one key."""
    keys = iter(small_keys)
    monkeypatch.setattr(jwks, "generate_key", lambda now: {**next(keys), "iat": now})
    path = tmp_path / "keys" / "jwks.json"
    for name, value in {"path": path, "file_state": (), "keys": None}.items():
        monkeypatch.setattr(jwks.get_key_file(), name, value)
    # The file of the other tests has been asked for now, whichever test runs first.
    settings.OAUTH_JWKS_FILE = path
    call_command("rotate_signing_key")
    return path


def list_key_ids(key_file: Path) -> list[str]:
    return [field["kid"] for field in read_keys(key_file)]


def read_keys(key_file: Path) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = json.loads(key_file.read_text())["keys"]
    return fields


def get_key_id(token: str) -> Any:
    return decode_token(token)[0]["kid"]


def sign_token() -> str:
    return forge_token(build_claims(1, client_id="shelf"))


def test_a_new_key_has_2048_bits() -> None:
    key: Any = RSAKey.import_key(jwks.generate_key(0)).private_key
    assert key.key_size == 2048


def test_a_new_key_signs_immediately_and_old_tokens_stay_valid(api: httpx.Client, key_file: Path) -> None:
    reader, app = create_reader(), create_public_app()
    old = obtain_tokens(api, reader, app)["access_token"]
    call_command("rotate_signing_key")
    assert read_keys(key_file)[1]["exp"] >= access_tokens.verify_access_token(old, time.time()).exp
    new = obtain_tokens(api, reader, app)["access_token"]
    assert [get_key_id(new), get_key_id(old)] == list_key_ids(key_file)
    assert [find_granted_scope(api, token) for token in (old, new)] == ["read", "read"]
    published = api.get("/.well-known/jwks.json").json()["keys"]
    assert {key["kid"] for key in published} == {get_key_id(old), get_key_id(new)}


def test_old_tokens_are_valid_until_the_end_of_the_overlap(key_file: Path) -> None:
    token, now = sign_token(), int(time.time())
    jwks.rotate_key(key_file, now, overlap=60)
    assert access_tokens.verify_access_token(token, now + 59).client_id == "shelf"
    assert get_key_id(token) in str(jwks.build_public_jwks(jwks.get_keys(), now + 59))
    with pytest.raises(access_tokens.InvalidToken):
        access_tokens.verify_access_token(token, now + 60)
    assert get_key_id(token) not in str(jwks.build_public_jwks(jwks.get_keys(), now + 60))


def test_a_key_that_is_removed_verifies_no_token_any_more(key_file: Path) -> None:
    token = sign_token()
    assert access_tokens.verify_access_token(token, time.time())
    key_file.unlink()
    jwks.rotate_key(key_file, int(time.time()), overlap=60)
    with pytest.raises(access_tokens.InvalidToken):
        access_tokens.verify_access_token(token, time.time())


def test_expired_keys_are_removed_by_the_next_rotation(key_file: Path) -> None:
    first, now = list_key_ids(key_file)[0], int(time.time())
    second = jwks.rotate_key(key_file, now, overlap=60)
    assert list_key_ids(key_file) == [second, first]
    third = jwks.rotate_key(key_file, now + 60, overlap=60)
    assert list_key_ids(key_file) == [third, second]


def test_a_token_signed_with_a_new_key_of_another_process_is_accepted(key_file: Path) -> None:
    sign_token()
    jwks.rotate_key(key_file, int(time.time()), overlap=60)
    other_key = jwks.KeyFile(key_file).get_keys().signing_key
    token_of_other_key = forge_token(build_claims(1), other_key, kid=other_key.kid)
    assert access_tokens.verify_access_token(token_of_other_key, time.time())


def test_prepared_keys_are_published_before_they_sign_one_after_the_other(key_file: Path) -> None:
    (first,) = list_key_ids(key_file)
    for _ in range(2):
        call_command("rotate_signing_key", "--prepare")
    _, second, third = list_key_ids(key_file)
    published = jwks.build_public_jwks(jwks.get_keys(), time.time())["keys"]
    assert [key["kid"] for key in published] == [first, second, third]
    assert jwks.get_keys().signing_key.kid == first
    for prepared in (second, third):
        call_command("rotate_signing_key")
        assert jwks.get_keys().signing_key.kid == prepared
    assert set(list_key_ids(key_file)) == {first, second, third}


def test_only_its_owner_reads_the_file(key_file: Path) -> None:
    call_command("rotate_signing_key")
    assert [stat.S_IMODE(path.stat().st_mode) for path in sorted(key_file.parent.iterdir())] == [0o600, 0o600]
    assert stat.S_IMODE(key_file.parent.stat().st_mode) == 0o700


def test_a_file_that_others_can_read_gives_a_warning(key_file: Path) -> None:
    assert "oauth.W001" not in {message.id for message in run_checks()}
    key_file.chmod(0o640)
    assert "oauth.W001" in {message.id for message in run_checks()}


def test_rotations_at_the_same_time_lose_no_key(key_file: Path) -> None:
    first, now = list_key_ids(key_file)[0], int(time.time())
    with ThreadPoolExecutor(4) as threads:
        prepared = [threads.submit(jwks.prepare_key, key_file, now) for _ in range(2)]
        rotations = [threads.submit(jwks.rotate_key, key_file, now, 60) for _ in range(2)]
    new_ids = {future.result() for future in [*prepared, *rotations]}
    assert {first, *new_ids} == set(list_key_ids(key_file))
    assert len([field for field in read_keys(key_file) if not field.keys() & {"exp", "prepared"}]) == 1


BROKEN_FILES = ["", "{", "[]", '{"keys": []}', '{"keys": [{"kid": "x", "kty": "RSA"}]}', None]


def test_a_broken_file_leaves_the_keys_as_they_were(key_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    token = sign_token()
    secrets = [read_keys(key_file)[0][name] for name in PRIVATE_FIELDS]
    caplog.set_level(logging.ERROR)
    for content in BROKEN_FILES:
        key_file.unlink()
        if content is not None:
            key_file.write_text(content)
        for _ in range(2):
            assert access_tokens.verify_access_token(token, time.time()), content
        assert [str(key_file) in message for message in caplog.messages] == [True], content
        assert not [secret for secret in secrets if secret in caplog.text], content
        caplog.clear()


def test_no_key_is_written_to_a_broken_file(key_file: Path) -> None:
    for content, options in (
        ("", []),
        ("{", ["--prepare"]),
        ("[]", ["--if-missing"]),
        ('{"keys": 1}', []),
        ("\udcff", []),
    ):
        key_file.write_text(content, errors="surrogateescape")
        with pytest.raises(CommandError, match="holds no JWKS"):
            call_command("rotate_signing_key", *options)
        assert key_file.read_text(errors="surrogateescape") == content


def test_without_a_key_the_library_does_not_start(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key_file.unlink()
    monkeypatch.setattr(jwks.get_key_file(), "keys", None)
    assert "oauth.E001" in {message.id for message in run_checks()}
    call_command("rotate_signing_key", "--if-missing")
    assert "oauth.E001" not in {message.id for message in run_checks()}


def test_a_key_that_may_not_be_read_is_not_called_missing(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jwks.get_key_file(), "keys", None)
    monkeypatch.setattr(jwks.get_key_file(), "read_keys", lambda _: None)
    # The superuser, who may run the tests, can read everything.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(jwks.NoSigningKey, match="cannot be read by the user"):
        jwks.get_keys()


def test_the_command_says_what_it_did(key_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def rotate(*options: str) -> str:
        call_command("rotate_signing_key", *options)
        return capsys.readouterr().out

    prepared_output, prepared = rotate("--prepare"), list_key_ids(key_file)[1]
    assert prepared_output.startswith(f"Added the key {prepared} to {key_file}. It signs no tokens yet.\n")
    assert rotate() == (
        f"Access tokens are signed with the key {prepared} of {key_file} from now on.\n"
        "Tokens that the old key signed stay valid until they expire, in 60 minutes at the latest. "
        "No restart is needed.\n"
    )
    key_file.unlink()
    assert rotate("--if-missing").startswith(f"Created the key that signs access tokens, in {key_file}.")
    assert rotate("--if-missing") == ""


def test_if_missing_uses_a_prepared_key(key_file: Path) -> None:
    key_file.unlink()
    prepared = jwks.prepare_key(key_file, int(time.time()))
    call_command("rotate_signing_key", "--if-missing")
    assert jwks.KeyFile(key_file).get_keys().signing_key.kid == prepared


def test_a_path_that_cannot_be_written_is_reported(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings.OAUTH_JWKS_FILE = tmp_path / "file" / "jwks.json"
    with pytest.raises(CommandError, match=r"Not a directory|File exists"):
        call_command("rotate_signing_key")

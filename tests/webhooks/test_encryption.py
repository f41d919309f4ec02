"""How signing secrets are made and kept."""

import pytest
from django.conf import settings
from django.core import signing
from django.test import override_settings

from webhooks import encryption

pytestmark = pytest.mark.once


def test_secrets_are_long_and_never_the_same() -> None:
    made = {encryption.generate_secret() for _ in range(100)}
    assert len(made) == 100
    assert all(secret.startswith("whsec_") and len(secret) == 49 and secret.isascii() for secret in made)


@pytest.mark.parametrize("secret", ["whsec_secret", "", "ü\0€", "s" * 10_000])
def test_a_sealed_secret_can_be_had_again(secret: str) -> None:
    assert encryption.decrypt(encryption.encrypt(secret)) == secret


def test_a_seal_shows_neither_the_secret_nor_that_two_are_the_same() -> None:
    one, other = encryption.encrypt("whsec_secret"), encryption.encrypt("whsec_secret")
    assert one != other
    assert "whsec" not in one + other
    assert one.isascii()


@override_settings(SECRET_KEY="old")
def test_a_secret_key_that_stays_as_a_fallback_still_opens() -> None:
    sealed = encryption.encrypt("whsec_secret")
    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["older", "old"]):
        assert encryption.decrypt(sealed) == "whsec_secret"
        renewed = encryption.encrypt(encryption.decrypt(sealed))
    with override_settings(SECRET_KEY="new"):
        assert encryption.decrypt(renewed) == "whsec_secret"


@override_settings(SECRET_KEY="old")
def test_a_secret_key_that_is_gone_does_not() -> None:
    sealed = encryption.encrypt("whsec_secret")
    with override_settings(SECRET_KEY="new"), pytest.raises(encryption.DecryptionError):
        encryption.decrypt(sealed)


@pytest.mark.parametrize("sealed", ["", "whsec_secret", "gAAAAA", "ü", "\0", "=" * 100])
def test_what_was_never_sealed_does_not_open(sealed: str) -> None:
    with pytest.raises(encryption.DecryptionError):
        encryption.decrypt(sealed)


def test_what_was_changed_does_not_open() -> None:
    sealed = encryption.encrypt("whsec_secret")
    for place in range(0, len(sealed) - 4, 7):
        changed = sealed[:place] + ("A" if sealed[place] != "A" else "B") + sealed[place + 1 :]
        with pytest.raises(encryption.DecryptionError):
            encryption.decrypt(changed)


def test_what_django_signs_is_no_seal() -> None:
    with pytest.raises(encryption.DecryptionError):
        encryption.decrypt(signing.dumps("whsec_secret", key=settings.SECRET_KEY))

"""How signing secrets are generated, encrypted for the database and decrypted."""

from base64 import b64decode

import pytest
from django.conf import settings
from django.core import signing
from django.test import override_settings

from library_site.encryption import DecryptionError, encrypt
from tests.support.endpoints import OLD_SECRET, SECRET
from webhooks import encryption


def test_a_new_secret_is_one_of_standard_webhooks_and_never_the_same() -> None:
    secrets = {encryption.generate_secret() for _ in range(20)}
    keys = {b64decode(secret.removeprefix("whsec_"), validate=True) for secret in secrets}
    assert len(secrets) == 20
    assert {len(key) for key in keys} == {36}
    assert all(secret.startswith("whsec_") for secret in secrets)


def test_a_form_signs_with_secrets_that_it_can_use_and_that_can_be_decrypted() -> None:
    for form, secret, is_good in (("B", OLD_SECRET, True), ("C", OLD_SECRET, False), ("C", SECRET, True)):
        assert encryption.can_sign(form, encryption.encrypt_secret(secret)) is is_good, (form, secret)
        assert not encryption.can_sign(form, "nonsense")


def test_ciphertext_shows_neither_the_secret_nor_that_two_are_the_same() -> None:
    first, second = encryption.encrypt_secret("whsec_secret"), encryption.encrypt_secret("whsec_secret")
    assert first != second
    assert "whsec" not in first + second
    assert first.isascii()


@override_settings(SECRET_KEY="the key of a library that runs")
def test_a_stored_secret_can_be_decrypted_by_every_release() -> None:
    stored = (
        "gAAAAABrAngKfb72TsXF6yaM_bIcuHTPW2YV7AbGLszvgG1QXjqcQqYFedVUVDpEPVvGTDkJ3i46oW0o"
        "Helf6b4cqaJKy4foIjTtT6Fry6WLryEDbDymR5E="
    )
    assert encryption.decrypt_secret(stored) == "whsec_of-an-old-endpoint"


@override_settings(SECRET_KEY="old")
def test_a_fallback_secret_key_still_decrypts() -> None:
    encrypted = encryption.encrypt_secret("whsec_secret")
    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["older", "old"]):
        assert encryption.decrypt_secret(encrypted) == "whsec_secret"
        encrypted_again = encryption.encrypt_secret(encryption.decrypt_secret(encrypted))
    with override_settings(SECRET_KEY="new"):
        assert encryption.decrypt_secret(encrypted_again) == "whsec_secret"


def test_other_text_is_not_decrypted() -> None:
    of_another_purpose = encrypt("whsec_secret", "second factor")
    signed = signing.dumps("whsec_secret", key=settings.SECRET_KEY)
    for text in ("", "whsec_secret", "gAAAAA", "ü", "\0", "=" * 100, of_another_purpose, signed):
        with pytest.raises(DecryptionError):
            encryption.decrypt_secret(text)

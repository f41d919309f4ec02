"""Rotates the key that signs access tokens."""

import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from oauth2_provider.settings import oauth2_settings

from oauth.tokens import access_tokens, jwks


class Command(BaseCommand):
    help = "Lets a new key sign access tokens; old ones verify until their last token has expired. No restart."
    # The checks fail without a key, and this command makes the first one.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        options = parser.add_mutually_exclusive_group()
        options.add_argument("--prepare", action="store_true", help="add a key that verifies and does not sign yet")
        options.add_argument("--if-missing", action="store_true", help="do nothing if there is a key that signs")

    def handle(self, *args: Any, prepare: bool, if_missing: bool, **options: Any) -> None:
        path, now = settings.OAUTH_JWKS_FILE, int(time.time())
        overlap = oauth2_settings.ACCESS_TOKEN_EXPIRE_SECONDS + access_tokens.LEEWAY
        is_first = not has_signing_key(path)
        if if_missing and not is_first:
            return
        try:
            kid = jwks.prepare_key(path, now) if prepare else jwks.rotate_key(path, now, overlap)
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}.") from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise CommandError(f"{path} holds no JWKS, and was left as it is.") from error
        self.stdout.write(describe_rotation(path, kid, prepare, is_first, overlap))


def describe_rotation(path: Path, kid: str, prepare: bool, is_first: bool, overlap: int) -> str:
    if prepare:
        return (
            f"Added the key {kid} to {path}. It signs no tokens yet.\n"
            "Copy the file to every machine of the library. The next rotate_signing_key lets the key sign."
        )
    if is_first:
        return f"Created the key that signs access tokens, in {path}. Only its owner may read the file."
    return (
        f"Access tokens are signed with the key {kid} of {path} from now on.\n"
        f"Tokens that the old key signed stay valid until they expire, in {overlap // 60} minutes at the latest. "
        "No restart is needed."
    )


def has_signing_key(path: Path) -> bool:
    try:
        jwks.KeyFile(path).get_keys()
    except jwks.NoSigningKey:
        return False
    return True

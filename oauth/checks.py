"""System checks of the signing key and of LIBRARY_ACCESS (`manage.py check`)."""

import stat
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core import checks

from oauth.tokens import jwks


@checks.register
def check_signing_key(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    try:
        jwks.get_keys()
    except jwks.NoSigningKey as error:
        return [checks.Error(str(error), hint="OAUTH_JWKS_FILE says where the file is.", id="oauth.E001")]
    return []


@checks.register
def check_key_file_mode(app_configs: Any, **options: Any) -> Iterator[checks.CheckMessage]:
    path = settings.OAUTH_JWKS_FILE
    if not path.exists() or not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return
    yield checks.Warning(
        f"Other users than its owner can access {path}: anyone who reads it can sign tokens.",
        hint=f"chmod 600 {path}",
        id="oauth.W001",
    )


@checks.register
def check_library_access(app_configs: Any, **options: Any) -> Iterator[checks.CheckMessage]:
    if settings.DEBUG or settings.LIBRARY_ACCESS != "open":
        return
    yield checks.Warning(
        "LIBRARY_ACCESS is open: anyone who reaches the library can change it.",
        hint="Set LIBRARY_ACCESS=protect-writes, or protected.",
        id="oauth.W002",
    )

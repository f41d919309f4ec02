"""What must not be so where tokens are issued (`manage.py check`)."""

import stat
from typing import Any

from django.conf import settings
from django.core import checks

from oauth.tokens import jwks


@checks.register
def check_signing_key(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    try:
        jwks.get_keys()
    except jwks.NoSigningKey as error:
        hint = "`manage.py rotate_signing_key` makes one; OAUTH_JWKS_FILE tells where."
        return [checks.Error(str(error), hint=hint, id="oauth.E001")]
    return []


@checks.register
def check_key_file_mode(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    path = settings.OAUTH_JWKS_FILE
    if not path.exists() or not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return []
    return [
        checks.Warning(
            f"Others than its owner may use {path}: who reads it can sign tokens.",
            hint=f"chmod 600 {path}",
            id="oauth.W001",
        )
    ]


@checks.register
def check_library_access(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    if settings.DEBUG or settings.LIBRARY_ACCESS != "open":
        return []
    return [
        checks.Warning(
            "LIBRARY_ACCESS is open: whoever reaches the library may change it.",
            hint="Set LIBRARY_ACCESS=protect-writes, or protected.",
            id="oauth.W002",
        )
    ]

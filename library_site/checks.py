"""Combinations of settings that are dangerous together (`manage.py check`)."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, register
from django.core.checks import Warning as Danger

THIS_MACHINE = {"127.0.0.1", "localhost", "[::1]", "::1"}


@register
def debugging_in_public(app_configs: Any, **options: Any) -> list[CheckMessage]:
    if not settings.DEBUG or THIS_MACHINE.issuperset(settings.ALLOWED_HOSTS):
        return []
    return [
        Danger(
            "DEBUG is on, and ALLOWED_HOSTS lets other machines in: error pages show them the inside.",
            hint="Set DEBUG=false.",
            id="library_site.W001",
        )
    ]


@register
def passwords_in_the_clear(app_configs: Any, **options: Any) -> list[CheckMessage]:
    if settings.HTTPS or settings.HOST in THIS_MACHINE:
        return []
    return [
        Danger(
            f"HOST is {settings.HOST} without HTTPS: librarians' passwords and sessions can be read on the way.",
            hint="Put a proxy with a certificate in front, and set HTTPS=true.",
            id="library_site.W002",
        )
    ]

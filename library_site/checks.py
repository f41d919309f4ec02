"""Combinations of settings that are dangerous together (`manage.py check`)."""

from typing import Any

from django.conf import settings
from django.core import checks

THIS_MACHINE = {"127.0.0.1", "localhost", "[::1]", "::1"}


@checks.register
def debugging_in_public(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    if not settings.DEBUG or not others_are_let_in():
        return []
    return [
        checks.Warning(
            "DEBUG is on, and ALLOWED_HOSTS lets other machines in: error pages show them the inside.",
            hint="Set DEBUG=false.",
            id="library_site.W001",
        )
    ]


@checks.register
def passwords_in_the_clear(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    if settings.HTTPS or settings.HOST in THIS_MACHINE:
        return []
    return [
        checks.Warning(
            f"HOST is {settings.HOST} without HTTPS: librarians' passwords and sessions can be read on the way.",
            hint="Put a proxy with a certificate in front, and set HTTPS=true.",
            id="library_site.W002",
        )
    ]


@checks.register
def limits_that_add_up(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    if not settings.API_RATE_LIMIT or settings.REDIS_URL or settings.WEB_CONCURRENCY == 1:
        return []
    return [
        checks.Warning(
            f"API_RATE_LIMIT holds for each of {settings.WEB_CONCURRENCY} processes: together they let more through.",
            hint="Set REDIS_URL, or WEB_CONCURRENCY=1.",
            id="library_site.W003",
        )
    ]


@checks.register
def webhooks_into_this_network(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    if not settings.WEBHOOKS_ALLOW_PRIVATE or not others_are_let_in():
        return []
    return [
        checks.Warning(
            "WEBHOOKS_ALLOW_PRIVATE is on, and other machines are let in: whoever has a webhook reaches this network.",
            hint="Set WEBHOOKS_ALLOW_PRIVATE=false.",
            id="library_site.W004",
        )
    ]


@checks.register
def versions_that_end_before_they_are_deprecated(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    return [
        checks.Error(
            f"API_V{number}_SUNSET_ON is set without an API_V{number}_DEPRECATED_ON that is no later (RFC 9745, 4).",
            hint="Deprecate a version first, and give its clients time.",
            id="library_site.E001",
        )
        for number, told in settings.API_LIFECYCLES.items()
        if told["sunset_on"] and not (told["deprecated_on"] and told["deprecated_on"] <= told["sunset_on"])
    ]


def others_are_let_in() -> bool:
    return not THIS_MACHINE.issuperset(settings.ALLOWED_HOSTS)

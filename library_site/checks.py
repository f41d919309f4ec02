"""System checks for dangerous combinations of settings (`manage.py check`)."""

import stat
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import connection

LOOPBACK_HOSTS = {"127.0.0.1", "localhost", "[::1]", "::1"}


@checks.register
def check_debug(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    if not settings.DEBUG or not allows_remote_hosts():
        return []
    return [
        checks.Warning(
            "DEBUG is on, and ALLOWED_HOSTS lets other machines in: error pages show them internal details.",
            hint="Set DEBUG=false.",
            id="library_site.W001",
        )
    ]


@checks.register
def check_https(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    if settings.HTTPS or settings.HOST in LOOPBACK_HOSTS:
        return []
    return [
        checks.Warning(
            f"HOST is {settings.HOST} without HTTPS: others on the network can read passwords and sessions.",
            hint="Put a proxy with a certificate in front, and set HTTPS=true.",
            id="library_site.W002",
        )
    ]


@checks.register
def check_rate_limit(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    if not settings.API_RATE_LIMIT or settings.REDIS_URL or settings.WEB_CONCURRENCY == 1:
        return []
    return [
        checks.Warning(
            f"API_RATE_LIMIT applies to each of {settings.WEB_CONCURRENCY} processes: together they allow more.",
            hint="Set REDIS_URL, or WEB_CONCURRENCY=1.",
            id="library_site.W003",
        )
    ]


@checks.register
def check_num_proxies(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    if settings.REST_FRAMEWORK["NUM_PROXIES"] or not (settings.HTTPS or settings.PUBLIC_URL.startswith("https:")):
        return []
    return [
        checks.Warning(
            "A proxy terminates HTTPS, and NUM_PROXIES is 0: all callers have the proxy's address, so anybody can lock"
            " everybody out, and all share one rate limit.",
            hint="Set NUM_PROXIES to the number of proxies that add an address to X-Forwarded-For.",
            id="library_site.W006",
        )
    ]


@checks.register(deploy=True)
def check_proxy(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    """Says what the library cannot see: the server gives `X_Forwarded_For` and `X-Forwarded-For` the same name."""
    if not settings.REST_FRAMEWORK["NUM_PROXIES"]:
        return []
    return [
        checks.Info(
            "NUM_PROXIES is set, so callers have the addresses that the proxies write to X-Forwarded-For.",
            hint="The proxy must drop headers whose names contain an underscore, as nginx does by default"
            " (underscores_in_headers off), and nobody else may reach the library's port.",
            id="library_site.I001",
        )
    ]


@checks.register
def check_private_webhooks(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    if not settings.WEBHOOKS_ALLOW_PRIVATE or not allows_remote_hosts():
        return []
    return [
        checks.Warning(
            "WEBHOOKS_ALLOW_PRIVATE is on, and other machines are let in: webhooks can reach this network.",
            hint="Set WEBHOOKS_ALLOW_PRIVATE=false.",
            id="library_site.W004",
        )
    ]


@checks.register
def check_lifecycles(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    return [
        checks.Error(
            f"API_V{number}_SUNSET_ON is set without an API_V{number}_DEPRECATED_ON that is no later (RFC 9745, 4).",
            hint="Deprecate a version first, and give its clients time.",
            id="library_site.E001",
        )
        for number, lifecycle in settings.API_LIFECYCLES.items()
        if lifecycle["sunset_on"]
        and not (lifecycle["deprecated_on"] and lifecycle["deprecated_on"] <= lifecycle["sunset_on"])
    ]


@checks.register
def check_database_mode(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    """A group may share the file: web processes and workers can have users of their own."""
    path = Path(connection.settings_dict["NAME"])
    if connection.vendor != "sqlite" or not path.exists():
        return []
    if not path.stat().st_mode & stat.S_IRWXO or not path.absolute().parent.stat().st_mode & stat.S_IXOTH:
        return []
    return [
        checks.Warning(
            f"Every user of this machine can access {path}: it holds sessions and hashes of passwords.",
            hint=f"chmod o= {path}*",
            id="library_site.W005",
        )
    ]


def allows_remote_hosts() -> bool:
    return not LOOPBACK_HOSTS.issuperset(settings.ALLOWED_HOSTS)

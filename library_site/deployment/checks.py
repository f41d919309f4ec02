"""System checks for dangerous or unlikely settings (`manage.py check`)."""

import os
from collections.abc import Iterator
from email.utils import parseaddr
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.db import connection
from django.http.request import split_domain_port, validate_host

from library_site.db.writer_queue import WAL_SUFFIX
from library_site.deployment.env import local_origin

# The number of hexadecimal digits of 128 bits.
MIN_SECRET_KEY_LENGTH = 32
# Beside the database SQLite has this file, which its readers share.
SHM_SUFFIX = "-shm"
LOOPBACK_HOSTS = {"127.0.0.1", "localhost", "[::1]", "::1"}


@checks.register
def check_exposure(app_configs: Any, **options: Any) -> Iterator[checks.CheckMessage]:
    """What others on the network, or pages of other names, can reach."""
    has_remote_hosts = not LOOPBACK_HOSTS.issuperset(settings.ALLOWED_HOSTS)
    if settings.DEBUG and has_remote_hosts:
        yield checks.Warning(
            "DEBUG is on, and ALLOWED_HOSTS lets other machines in: error pages show them internal details.",
            hint="Set DEBUG=false.",
            id="library_site.W001",
        )
    if not settings.HTTPS and settings.HOST not in LOOPBACK_HOSTS:
        yield checks.Warning(
            f"HOST is {settings.HOST} without HTTPS: others on the network can read passwords and sessions.",
            hint="Put a proxy with a certificate in front, and set HTTPS=true.",
            id="library_site.W002",
        )
    if settings.WEBHOOKS_ALLOW_PRIVATE and has_remote_hosts:
        yield checks.Warning(
            "WEBHOOKS_ALLOW_PRIVATE is on, and other machines are let in: webhooks can reach this network.",
            hint="Set WEBHOOKS_ALLOW_PRIVATE=false.",
            id="library_site.W004",
        )
    if "*" in settings.ALLOWED_HOSTS:
        yield checks.Warning(
            "ALLOWED_HOSTS is *: a page of any name that leads here can read what the library answers.",
            hint="Set ALLOWED_HOSTS to the names of the library.",
            id="library_site.W007",
        )
    for name, keys in {
        "SECRET_KEY": [settings.SECRET_KEY],
        "SECRET_KEY_FALLBACKS": settings.SECRET_KEY_FALLBACKS,
    }.items():
        for key in keys:
            if len(key) < MIN_SECRET_KEY_LENGTH and not settings.DEBUG:
                yield checks.Error(
                    f"{name} has {len(key)} characters: who guesses it forges sessions.",
                    hint=f"Set {MIN_SECRET_KEY_LENGTH} random characters or more: `openssl rand -base64 48` prints such"
                    " a key.",
                    id="library_site.E002",
                )


@checks.register
def check_addresses(app_configs: Any, **options: Any) -> Iterator[checks.CheckMessage]:
    if settings.HTTPS and settings.PUBLIC_URL.startswith("http:"):
        yield checks.Warning(
            f"HTTPS is on, and PUBLIC_URL is {settings.PUBLIC_URL}: links lead away from HTTPS, and apps refuse the"
            " issuer of the tokens.",
            hint="Set PUBLIC_URL to the address of the library that begins with https://.",
            id="library_site.W008",
        )
    host = split_domain_port(urlsplit(settings.PUBLIC_URL).netloc)[0]
    if not validate_host(host, settings.ALLOWED_HOSTS):
        yield checks.Warning(
            f"PUBLIC_URL is {settings.PUBLIC_URL}, and ALLOWED_HOSTS refuses requests to {host}.",
            hint=f"Add {host} to ALLOWED_HOSTS.",
            id="library_site.W009",
        )
    if settings.HEALTH_PORT == settings.PORT:
        yield checks.Error(
            f"HEALTH_PORT and PORT are both {settings.PORT}: half the requests would get a 404.",
            hint="Set HEALTH_PORT to another one.",
            id="library_site.E005",
        )
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2]
    if settings.EMAIL_HOST and "." not in domain:
        yield checks.Warning(
            f"EMAIL_FROM is {settings.DEFAULT_FROM_EMAIL}: mail servers refuse a sender without a domain.",
            hint="Set EMAIL_FROM to an address such as library@library.example.",
            id="library_site.W016",
        )
    has_tls = settings.EMAIL_USE_TLS or settings.EMAIL_USE_SSL
    if settings.EMAIL_HOST_USER and not has_tls and settings.EMAIL_HOST not in {"", *LOOPBACK_HOSTS}:
        yield checks.Warning(
            "EMAIL_HOST_USER is set without EMAIL_USE_TLS: others on the network can read its password and the mails.",
            hint="Set EMAIL_USE_TLS=true, or EMAIL_PORT=465.",
            id="library_site.W019",
        )


@checks.register
def check_api_lifecycles(app_configs: Any, **options: Any) -> Iterator[checks.CheckMessage]:
    for number, lifecycle in settings.API_LIFECYCLES.items():
        deprecated_on, sunset_on = lifecycle["deprecated_on"], lifecycle["sunset_on"]
        if sunset_on and not (deprecated_on and deprecated_on <= sunset_on):
            yield checks.Error(
                f"API_V{number}_SUNSET_ON is set without an API_V{number}_DEPRECATED_ON that is no later (RFC 9745,"
                " 4).",
                hint="Deprecate a version first, and give its clients time.",
                id="library_site.E001",
            )


@checks.register
def check_proxy_count(app_configs: Any, **options: Any) -> Iterator[checks.CheckMessage]:
    if not settings.REST_FRAMEWORK["NUM_PROXIES"]:
        if settings.HTTPS or settings.PUBLIC_URL.startswith("https:"):
            yield checks.Warning(
                "A proxy terminates HTTPS, and NUM_PROXIES is 0: all callers have the proxy's address, so anybody can"
                " lock everybody out, and all share one rate limit.",
                hint="Set NUM_PROXIES to the number of proxies that add an address to X-Forwarded-For.",
                id="library_site.W006",
            )
    elif local_origin(settings.HOST, settings.PORT) == settings.PUBLIC_URL:
        yield checks.Warning(
            "NUM_PROXIES counts proxies, and PUBLIC_URL is the address of the server itself: a caller that reaches it"
            " without a proxy chooses its own address, and so escapes limits and lockouts.",
            hint="Set NUM_PROXIES=0, or PUBLIC_URL to the address of the proxy.",
            id="library_site.W012",
        )


@checks.register(deploy=True)
def check_proxy_headers(app_configs: Any, **options: Any) -> Iterator[checks.CheckMessage]:
    """Says what the library cannot see: the server gives `X_Forwarded_For` and `X-Forwarded-For` the same name."""
    if settings.REST_FRAMEWORK["NUM_PROXIES"]:
        yield checks.Info(
            "NUM_PROXIES is set, so callers have the addresses that the proxies write to X-Forwarded-For.",
            hint="The proxy must drop headers whose names contain an underscore, as nginx does by default"
            " (underscores_in_headers off), and nobody else may reach the library's port.",
            id="library_site.I001",
        )


@checks.register
def check_rate_limit(app_configs: Any, **options: Any) -> Iterator[checks.CheckMessage]:
    if settings.API_RATE_LIMIT and not settings.REDIS_URL and settings.WEB_CONCURRENCY > 1:
        yield checks.Warning(
            f"API_RATE_LIMIT applies to each of {settings.WEB_CONCURRENCY} processes: together they allow more.",
            hint="Set REDIS_URL, or WEB_CONCURRENCY=1.",
            id="library_site.W003",
        )
    if settings.REDIS_URL and not settings.API_RATE_LIMIT:
        yield checks.Warning(
            "REDIS_URL is set without API_RATE_LIMIT: nothing is limited, and Redis is not used.",
            hint="Set API_RATE_LIMIT, or remove REDIS_URL.",
            id="library_site.W010",
        )


@checks.register
def check_redis_answers(app_configs: Any, **options: Any) -> Iterator[checks.CheckMessage]:
    """Runs only for web processes, which use Redis, and for `doctor`."""
    if settings.LIBRARY_PROCESS not in ("web", "doctor") or not (settings.REDIS_URL and settings.API_RATE_LIMIT):
        return
    # The import takes a tenth of a second, so it happens only if Redis is used.
    from library_site.rate_limit.redis_windows import is_redis_up

    if not is_redis_up(settings.REDIS_URL):
        yield checks.Warning(
            "The Redis of REDIS_URL does not answer.",
            hint="Until it does, each process counts requests on its own.",
            id="library_site.W015",
        )


@checks.register
def check_written_paths(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    """Runs only for the library's own processes: other commands may only read."""
    if settings.LIBRARY_PROCESS == "command":
        return []
    return [
        checks.Error(
            f"This process cannot write {path}.",
            hint=f"It runs as the user with the id {os.geteuid()}, who must own it.",
            id="library_site.E004",
        )
        for path in iter_unwritable_paths()
    ]


@checks.register
def check_static_files(app_configs: Any, **options: Any) -> Iterator[checks.CheckMessage]:
    """Runs only for the server and `doctor`: `collectstatic`, which copies the files, must be able to start."""
    if settings.LIBRARY_PROCESS in ("web", "doctor") and not settings.STATIC_ROOT.exists():
        yield checks.Warning(
            f"STATIC_ROOT is {settings.STATIC_ROOT}, which does not exist: pages have no styles and scripts.",
            hint="`manage.py collectstatic` copies them there.",
            id="library_site.W011",
        )


def list_folders() -> dict[str, Path]:
    """Returns the folders by the names that metrics have for them."""
    folders = {"data": settings.DATA_DIR}
    if database := find_database_file():
        folders["database"] = database.parent
    return folders


def find_database_file() -> Path | None:
    """Returns the file of SQLite, or None on PostgreSQL."""
    return Path(connection.settings_dict["NAME"]).absolute() if connection.vendor == "sqlite" else None


def iter_unwritable_paths() -> Iterator[Path]:
    """Yields the folders, and the files of SQLite that exist, that this process cannot write or create.

    The connections of a process share the -shm as the first of them has opened it: once read-only, it stays so.
    """
    for folder in dict.fromkeys(list_folders().values()):
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            yield folder
    if database := find_database_file():
        for file in (Path(f"{database}{suffix}") for suffix in ("", WAL_SUFFIX, SHM_SUFFIX)):
            if file.exists() and not os.access(file, os.R_OK | os.W_OK):
                yield file
    if settings.METRICS_TOKEN:
        # The server makes the folder, but cannot on a full disk.
        parent = next(filter(Path.exists, [settings.METRICS_DIR, *settings.METRICS_DIR.parents]))
        if not parent.is_dir() or not os.access(parent, os.R_OK | os.W_OK | os.X_OK):
            yield settings.METRICS_DIR

"""Readers of environment variables. A value that makes no sense stops the start with an error that names it."""

import os
import re
from collections.abc import Collection
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

FLAG_VALUES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
RATE_PATTERN = re.compile(r"([1-9][0-9]{0,8})/([1-9][0-9]{0,2})?(second|minute|hour|day)s?")
SECONDS_PER_UNIT = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


def text(name: str, default: str) -> str:
    """The variable, or the default where it is unset or empty."""
    return os.environ.get(name, "").strip() or default


def flag(name: str, default: bool) -> bool:
    value = text(name, str(default)).lower()
    if value not in FLAG_VALUES:
        raise ImproperlyConfigured(f"{name} is {value!r}; it takes one of {', '.join(FLAG_VALUES)}.")
    return FLAG_VALUES[value]


def integer(name: str, default: int, least: int, most: int) -> int:
    value = text(name, str(default))
    if not value.isascii() or not value.isdigit() or not least <= int(value) <= most:
        raise ImproperlyConfigured(f"{name} is {value!r}; it takes a whole number from {least} to {most}.")
    return int(value)


def address(name: str, default: str) -> str:
    value = text(name, default)
    try:
        return str(ip_address(value))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is {value!r}; it takes an IP address, such as 127.0.0.1.") from error


def choice(name: str, default: str, choices: Collection[str]) -> str:
    value = text(name, default).lower()
    if value not in choices:
        raise ImproperlyConfigured(f"{name} is {value!r}; it takes one of {', '.join(choices)}.")
    return value


def comma_list(name: str, default: str) -> list[str]:
    """The variable's words, split at commas."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def version_numbers(prefix: str, endings: Collection[str]) -> list[int]:
    """The numbers right behind the prefix in the names of variables, such as 1 of API_V1_RETIRED."""
    names = [name for name in os.environ if name.startswith(prefix)]
    found = {name: re.fullmatch(rf"{prefix}([1-9][0-9]*)_({'|'.join(endings)})", name) for name in names}
    if strange := [name for name, match in found.items() if not match]:
        raise ImproperlyConfigured(f"{strange[0]} is no setting; they end in {', '.join(endings)}.")
    return sorted({int(match[1]) for match in found.values() if match})


def date_time(name: str) -> datetime | None:
    """An aware datetime; a day is its first moment, and without a zone it is in UTC."""
    if not (value := text(name, "")):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is {value!r}; it takes a day, such as 2026-12-31.") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def url(name: str) -> str:
    """An address, or nothing. No quotes and no angle brackets: it stands between them in `Link`."""
    value = text(name, "")
    if value and not re.fullmatch(r"https?://[!#-;=?-~]+", value):
        raise ImproperlyConfigured(f"{name} is {value!r}; it takes an address, such as https://library.example/news.")
    return value


def origin(name: str, default: str) -> str:
    """Scheme, host and port, without a slash at the end."""
    return parse_origin(name, text(name, default))


def origins(name: str) -> list[str]:
    """The same, any number of them, separated by commas."""
    return [parse_origin(name, value) for value in comma_list(name, "")]


def parse_origin(name: str, given: str) -> str:
    value = given.removesuffix("/")
    matched = re.fullmatch(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?", value)
    if not matched or int(matched[2] or 0) > 65535:
        raise ImproperlyConfigured(f"{name} is {value!r}; it takes scheme and host, such as https://library.example.")
    return value


def local_origin(host: str, port: int) -> str:
    """Where a server that listens there is reached from its own machine."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # listens on all
    return f"http://{f'[{reached}]' if ':' in reached else reached}:{port}"


def rate(name: str) -> tuple[int, int] | None:
    """An amount and the seconds it is for, as `600/minute` or `10/5minutes`; None where there is no such variable."""
    value = text(name, "").lower()
    found = RATE_PATTERN.fullmatch(value)
    if value and not found:
        raise ImproperlyConfigured(f"{name} is {value!r}; it takes a rate, such as 10/second or 1000/12hours.")
    return (int(found[1]), int(found[2] or 1) * SECONDS_PER_UNIT[found[3]]) if found else None


def redis_url(name: str) -> str:
    """The address of a Redis, or nothing. It may hold a password, so no refusal repeats any of it."""
    value = text(name, "")
    if value:
        # Importing it takes a tenth of a second: only who counts in Redis waits.
        from redis import ConnectionPool

        try:
            ConnectionPool.from_url(value).make_connection()
        except (TypeError, ValueError):
            raise ImproperlyConfigured(f"{name} takes redis://user:password@host:port/0 or unix:///path.") from None
    return value


def secret_key(name: str, file: Path, debug: bool) -> str:
    """The variable, else the file's text; only a debugging start may do without either."""
    if value := text(name, ""):
        return value
    if file.exists():
        return file.read_text().strip()
    if debug:
        return get_random_secret_key()
    raise ImproperlyConfigured(f"{name} is not set and {file} does not exist. `make run` makes one.")

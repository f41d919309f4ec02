"""Reads settings from environment variables. Errors are collected, and reported together at the end."""

import errno
import os
import re
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

from library_site.db.integers import parse_integer

FLAG_VALUES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
RATE_PATTERN = re.compile(r"([1-9][0-9]{0,8})/([1-9][0-9]{0,2})?(second|minute|hour|day)s?")
HOST_PATTERN = re.compile(r"\*|\.?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\]")
# The group is the port.
ORIGIN_PATTERN = r"https?://(?:(?:\*\.)?[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?"
DEFAULT_PORTS = {"https": ":443", "http": ":80"}
SECONDS_PER_UNIT = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
# A name with this similarity to a setting, from 0 to 1, counts as a misspelled setting. PGPORT and PORT have 0.8.
MIN_SIMILARITY = 0.85
# Names that other programs use for our settings. They are too different to be found as misspelled names.
OTHER_NAMES = {"EMAIL_USE_SSL": "EMAIL_USE_TLS", "REDIS_PASSWORD": "REDIS_URL", "WEB_WORKERS": "WEB_CONCURRENCY"}
# granian and wsgiref add their own environment to that of each request. HTTP_PROXY is for programs that send requests,
# and nothing reads a header of that name.
REQUEST_PATTERN = re.compile(r"HTTP_(?!PROXY$).*|CONTENT_(TYPE|LENGTH)")
# What else sets variables of these names.
OTHER_ORIGINS = {"DEBUG": "a program of Node.js", "GZIP": "gzip", "HOST": "your shell"}
Value = TypeVar("Value")
read_names: set[str] = set()
# Error messages, by the name of the variable.
problems: dict[str, str] = {}


def read(name: str, default: str, parse: Callable[[str], Value], takes: str, *, is_secret: bool = False) -> Value:
    """Returns the parsed variable, or the parsed default if it is unset, empty or invalid. `parse` raises ValueError or
    LookupError, and `takes` says what is valid. No error shows a secret.
    """
    value = text(name, default)
    try:
        return parse(value)
    except (ValueError, LookupError):
        problems[name] = f"{name} takes {takes}." if is_secret else f"{name} is {value!r}; it takes {takes}."
        return parse(default)


def match(pattern: str | re.Pattern[str], value: str) -> re.Match[str]:
    """Raises ValueError."""
    if found := re.fullmatch(pattern, value):
        return found
    raise ValueError


def text(name: str, default: str) -> str:
    """Returns the variable's value, or the default if it is unset or empty."""
    read_names.add(name)
    return os.environ.get(name, "").strip() or default


def secret_text(name: str) -> str:
    """Returns the variable's value, or the content of the file in NAME_FILE, which containers use for secrets."""
    value, file = text(name, ""), text(f"{name}_FILE", "")
    if value and file:
        problems[f"{name}_FILE"] = f"{name}_FILE is set, and so is {name}. Remove one of them."
    if value or not file:
        return value
    try:
        return read_secret(Path(file))
    except OSError as error:
        problems[f"{name}_FILE"] = f"{name}_FILE is {file}, which cannot be read: {error.strerror}."
        return ""


def read_secret(file: Path) -> str:
    """Returns the content of the file. Raises OSError, also if it is empty or not UTF-8."""
    try:
        content = file.read_text().strip()
    except UnicodeDecodeError as error:
        raise OSError(errno.EINVAL, "it is not UTF-8") from error
    if not content:
        raise OSError(errno.EINVAL, "it is empty")
    return content


def flag(name: str, default: bool) -> bool:
    return read(name, str(default), lambda value: FLAG_VALUES[value.lower()], f"one of {', '.join(FLAG_VALUES)}")


def integer(name: str, default: int, minimum: int, maximum: int) -> int:
    def parse(value: str) -> int:
        number = parse_integer(value)
        if number is None or not minimum <= number <= maximum:
            raise ValueError
        return number

    return read(name, str(default), parse, f"a whole number from {minimum} to {maximum}")


def address(name: str, default: str) -> str:
    return read(name, default, lambda value: str(ip_address(value)), "an IP address, such as 127.0.0.1")


def choice(name: str, default: str, choices: Sequence[str]) -> str:
    return read(name, default, lambda value: choices[choices.index(value.lower())], f"one of {', '.join(choices)}")


def split_words(value: str) -> list[str]:
    """Returns the values between commas."""
    return [word.strip() for word in value.split(",") if word.strip()]


def comma_list(name: str, default: str, parse: Callable[[str], str] = str, takes: str = "") -> list[str]:
    return read(name, default, lambda value: list(map(parse, split_words(value))), f"{takes}, with commas between them")


def host_names(name: str, default: str) -> list[str]:
    """A scheme, port or path is an error: no Host header would match."""
    return comma_list(name, default, lambda value: match(HOST_PATTERN, value)[0], "names of hosts, as library.example")


def version_numbers(prefix: str, suffixes: Collection[str]) -> list[int]:
    """Returns the numbers between prefix and suffix in the names of variables, such as 1 of API_V1_RETIRED."""
    names = [name for name in os.environ if name.startswith(prefix)]
    matches = {name: re.fullmatch(rf"{prefix}([1-9][0-9]*)_({'|'.join(suffixes)})", name) for name in names}
    for name in [name for name, match in matches.items() if not match]:
        problems[name] = f"{name} is no setting; they end in {', '.join(suffixes)}."
    return sorted({int(match[1]) for match in matches.values() if match})


def date_time(name: str) -> datetime | None:
    """Returns an aware datetime. A date alone means midnight; without a zone the time is in UTC."""

    def parse(value: str) -> datetime | None:
        moment = datetime.fromisoformat(value) if value else None
        return moment if not moment or moment.tzinfo else moment.replace(tzinfo=UTC)

    return read(name, "", parse, "a day, such as 2026-12-31")


def url(name: str) -> str:
    """Returns a URL, or "". Quotes and angle brackets are rejected: they have a meaning in the `Link` header."""
    pattern = r"(https?://[!#-;=?-~]+)?"
    return read(name, "", lambda value: match(pattern, value)[0], "an address, such as https://library.example/news")


def url_templates(name: str, placeholder: str) -> list[str]:
    """Returns the URLs between commas. Each must have the placeholder after its host."""
    pattern = rf"({ORIGIN_PATTERN})/[!\"$-~]*{re.escape(placeholder)}[!\"$-~]*"
    example = f"https://sru.example/books?query=isbn%3D{placeholder}"

    def parse(value: str) -> str:
        parse_origin(match(pattern, value)[1])
        return value

    return comma_list(name, "", parse, f"addresses with {placeholder}, as {example}")


def origin(name: str, default: str) -> str:
    """Returns scheme, host and port, without a slash at the end."""
    return read(name, default, parse_origin, "scheme and host, such as https://library.example")


def origins(name: str, allow_wildcard: bool = False) -> list[str]:
    """Returns the origins between commas, as browsers send them (RFC 6454, Section 6.2). `allow_wildcard` lets a host
    begin with `*.`.
    """

    def parse(value: str) -> str:
        return serialize_origin(parse_origin(value, allow_wildcard))

    return comma_list(name, "", parse, "schemes and hosts, as https://library.example")


def serialize_origin(origin: str) -> str:
    """Returns the origin in lower case, and without the default port of its scheme."""
    value = origin.lower()
    return value.removesuffix(DEFAULT_PORTS[value.partition(":")[0]])


def parse_origin(text: str, allow_wildcard: bool = False) -> str:
    """Raises ValueError."""
    value = text.removesuffix("/")
    if int(match(ORIGIN_PATTERN, value)[1] or 0) > 65535 or ("*" in value and not allow_wildcard):
        raise ValueError
    return value


def local_origin(host: str, port: int) -> str:
    """Returns the origin of a server that listens on this host and port, for clients on the same machine."""
    reachable_host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # means all interfaces
    return f"http://{f'[{reachable_host}]' if ':' in reachable_host else reachable_host}:{port}"


def path(name: str, default: Path) -> Path:
    """Returns an absolute path."""
    return Path(text(name, str(default))).absolute()


def folder(name: str, default: Path) -> Path:
    """Returns the path of a folder. If it does not exist, it is created with access for its owner only."""
    value = path(name, default)
    try:
        value.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = "not a folder" if value.exists() else error.strerror
        problems[name] = f"{name} is {value}, which cannot be created: {reason}. It takes a folder of this user."
    return value


def rate(name: str) -> tuple[int, int] | None:
    """Reads a rate such as `600/minute` or `10/5minutes`.

    Returns the number of requests and the period in seconds, or None if the variable is unset.
    """

    def parse(value: str) -> tuple[int, int] | None:
        amount, number, unit = match(RATE_PATTERN, value.lower()).groups()
        return int(amount), int(number or 1) * SECONDS_PER_UNIT[unit]

    return read(name, "", lambda value: parse(value) if value else None, "a rate, such as 10/second or 1000/12hours")


def database(
    name: str, default: Path, deployed_names: Collection[str], parse: Callable[[str], dict[str, Any]]
) -> dict[str, Any]:
    """Returns the parsed address. The default is an SQLite file, unless one of `deployed_names` is set.

    With a default, a deployed library without its address would silently start with a new, empty database.
    """
    value, default_url = secret_text(name), f"sqlite:///{quote(str(default))}"
    set_names = [other for other in deployed_names if is_set(other)]
    if not value and set_names and f"{name}_FILE" not in problems:
        problems[name] = (
            f"{name} is not set, and with {set_names[0]} it has no default: it takes"
            " postgresql://user:password@host:port/name or sqlite:////path/of/the/file."
        )
    try:
        return parse(value or default_url)
    except ImproperlyConfigured as error:
        problems[name] = str(error)
        return parse(default_url)


def is_set(name: str) -> bool:
    """Tells whether the variable is set to a value other than false."""
    return FLAG_VALUES.get(text(name, "false").lower(), True)


def redis_url(name: str) -> str:
    """Returns the URL of a Redis server, or "". It can contain a password, so no error shows it."""

    def parse(value: str) -> str:
        if value:
            # The import takes a tenth of a second, so it happens only if Redis is used.
            from redis import ConnectionPool

            try:
                ConnectionPool.from_url(value).make_connection()
            except TypeError as error:
                raise ValueError from error
        return value

    return read(name, "", parse, "redis://user:password@host:port/0 or unix:///path", is_secret=True)


def optional_text(name: str, package: str) -> str:
    """Returns the value of a variable that needs an optional package."""
    value = text(name, "")
    if value and not is_installed(package):
        problems[name] = f"{name} needs packages: pip install --require-hashes -r requirements/optional.txt"
    return value


def is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        # Its parent package is missing.
        return False


def token(name: str) -> str:
    """Returns a token, or ""."""
    takes = "at least 16 characters of ASCII without a space"
    return read(name, "", lambda value: match(r"([!-~]{16,})?", value)[0], takes, is_secret=True)


class NewSecretKey(str):
    """A random key, which is stored nowhere."""

    __slots__ = ()


def secret_key(name: str, file: Path, may_be_missing: bool) -> str:
    """Returns the secret, or the content of `file`, or a NewSecretKey."""
    if value := secret_text(name):
        return value
    try:
        if f"{name}_FILE" not in problems:
            return read_secret(file)
    except FileNotFoundError:
        if not may_be_missing:
            problems[name] = (
                f"{name} is not set and {file} does not exist. `manage.py set_up` makes one, and so does `serve` with"
                " SET_UP."
            )
    except OSError as error:
        problems[name] = f"{name} is not set, and {file} cannot be read: {error.strerror}."
    return NewSecretKey(get_random_secret_key())


def refuse_wrong_values() -> None:
    """Raises ImproperlyConfigured with a line for each error.

    Call it after all settings are read. A variable whose name is similar to that of a setting is an error, too. All
    other variables are ignored.
    """
    for name in sorted(os.environ.keys() - read_names):
        if not os.environ[name].strip():
            continue
        known = OTHER_NAMES.get(name) or next(iter(get_close_matches(name, read_names, 1, MIN_SIMILARITY)), None)
        if REQUEST_PATTERN.fullmatch(name):
            problems[name] = f"{name} would be a header of every request, as if its client had sent it. Unset it."
        elif known:
            problems[name] = f"{name} is no setting. Did you mean {known}?"
    lines = [f"{problem}{describe_origin(name)}" for name, problem in problems.items()]
    problems.clear()
    if lines:
        raise ImproperlyConfigured("\n".join(lines))


def describe_origin(name: str) -> str:
    """Returns a sentence about who may have set a variable that the operator did not set, or ""."""
    if re.match("(tcp|udp|sctp)://", os.environ.get(name, "")):
        return " Kubernetes sets it for a service of that name: give the pod `enableServiceLinks: false`."
    if name in OTHER_ORIGINS:
        return f" If it is for {OTHER_ORIGINS[name]}, `env -u {name}` before a command runs it without."
    return ""

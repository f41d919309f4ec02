"""Readers of environment variables. A value that makes no sense stops the start with an error that names it."""

import os
from collections.abc import Collection
from ipaddress import ip_address
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

FLAGS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def text(name: str, default: str) -> str:
    """The variable, or the default where it is unset or empty."""
    return os.environ.get(name, "").strip() or default


def flag(name: str, default: bool) -> bool:
    value = text(name, str(default)).lower()
    if value not in FLAGS:
        raise ImproperlyConfigured(f"{name} is {value!r}; it takes one of {', '.join(FLAGS)}.")
    return FLAGS[value]


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


def words(name: str, default: str) -> list[str]:
    """The variable's words, split at commas."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def secret_key(name: str, file: Path, debug: bool) -> str:
    """The variable, else the file's text; only a debugging start may do without either."""
    if value := text(name, ""):
        return value
    if file.exists():
        return file.read_text().strip()
    if debug:
        return get_random_secret_key()
    raise ImproperlyConfigured(f"{name} is not set and {file} does not exist. `make run` makes one.")

"""Chooses the version of each request and adds its headers to the response (specification, Section 9)."""

import re
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from library_site.db import integers
from library_site.http.errors import envelope_format
from library_site.http.request_log import VERSION_KEY
from library_site.http.versions import API_ROOT, Version

# Cached, because requests have only a few different texts.
parse_version_number = lru_cache(maxsize=100)(integers.parse_integer)

API_PREFIX = f"{API_ROOT}/"
VERSION_PATH = re.compile(rf"{API_ROOT}/v([^/]*)(/.*)?", re.DOTALL)
VENDOR_TYPE = re.compile(r"application/vnd\.library(?:\.v(.*))?\+json")
# RFC 9110, 12.4.2.
QUALITY = re.compile(r"q=(0(?:\.\d*)?|1(?:\.0*)?)")


class VersionChoice(NamedTuple):
    """`path` is the path below a version's home, `query` the query without `version`. `refusal` is the error if no
    version could be chosen.
    """

    version: Version
    path: str
    query: str
    media_type: str = ""
    refusal: str = ""


def find_version(environ: Mapping[str, Any]) -> Version | None:
    return environ[VERSION_KEY].version if VERSION_KEY in environ else None


def accept_vendor_type(environ: dict[str, Any], version: Version) -> None:
    """Makes a body of this version's vendor type JSON. Without a number the type is that of any version."""
    content_type = environ.get("CONTENT_TYPE", "")
    if has_vendor_type(content_type):
        match = VENDOR_TYPE.fullmatch(content_type.partition(";")[0].strip().lower())
        if match and (match[1] is None or parse_version_number(match[1]) == version.number):
            environ["CONTENT_TYPE"] = "application/json"


def add_version_headers(headers: MutableMapping[str, str], choice: VersionChoice, latest: Version) -> None:
    """Adds the headers of the version's lifecycle, and gives JSON the media type that the client requested."""
    if choice.media_type and headers.get("Content-Type") == "application/json":
        headers["Content-Type"] = choice.media_type
    if choice.version.lifecycle.deprecated_on and not choice.refusal:
        successor = f"{latest.home}{choice.path}" if latest is not choice.version else ""
        for name, value in choice.version.lifecycle.build_headers(choice.version.number, successor):
            headers[name] = f"{headers[name]}, {value}" if name in headers else value


def choose_version(environ: Mapping[str, Any], versions: Mapping[int, Version], default: int) -> VersionChoice:
    """Reads the three selectors (path, Accept, query), and returns the version that all of them agree on.

    `default` is the number of the version for a request without a selector.
    """
    requested_path, query = environ["PATH_INFO"], environ.get("QUERY_STRING", "")
    if default in versions and names_no_version(environ):
        return VersionChoice(versions[default], requested_path.removeprefix(API_ROOT), query)
    segment = VERSION_PATH.fullmatch(requested_path)
    path = (segment[2] or "") if segment else requested_path.removeprefix(API_ROOT)
    inner = VERSION_PATH.match(API_ROOT + path) if segment else None
    if inner and parse_version_number(inner[1]) is not None:
        # A path with two versions, such as /api/v1/v2/books, does not exist in any version.
        path = requested_path
    media_type, vendor_number = choose_vendor_type(environ.get("HTTP_ACCEPT", ""), versions)
    query_numbers, query = pop_query_versions(query)
    selectors = [*([segment[1]] if segment else []), *([vendor_number] if media_type else []), *query_numbers]
    numbers = {parse_version_number(text) for text in selectors} or {default}
    if len(numbers) > 1:
        return reject_version(path, query, "The request names more than one version", versions)
    number = numbers.pop()
    if number is None or number not in versions:
        return reject_version(path, query, "The request names no version that is served", versions)
    return VersionChoice(versions[number], path, query, media_type)


def names_no_version(environ: Mapping[str, Any]) -> bool:
    """Tells, as a fast check, that a request has no selector. It may return false although there is none."""
    return not (
        environ["PATH_INFO"].startswith(f"{API_PREFIX}v")
        or may_name_version(environ.get("QUERY_STRING", ""))
        or has_vendor_type(environ.get("HTTP_ACCEPT", ""))
    )


def reject_version(path: str, query: str, reason: str, versions: Mapping[int, Version]) -> VersionChoice:
    """Uses the latest version: it has all addresses and methods, and a 405 comes before this error."""
    served_numbers = ", ".join(str(number) for number in versions)
    substitute = replace(versions[max(versions)], error_format=envelope_format)
    return VersionChoice(substitute, path, query, refusal=f"{reason}. Served: {served_numbers}.")


def choose_vendor_type(accept: str, versions: Mapping[int, Version]) -> tuple[str, str]:
    """Returns the preferred vendor type of an Accept header, with its version. Types of served versions come first."""
    if not has_vendor_type(accept):
        return "", ""
    latest = str(max(versions))
    preferences = sorted(iter_vendor_types(accept.lower()), key=lambda candidate: -candidate[0])
    candidates = [(name, latest if number is None else number) for weight, name, number in preferences if weight]
    served_candidates = [candidate for candidate in candidates if parse_version_number(candidate[1]) in versions]
    return next(iter(served_candidates or candidates), ("", ""))


def has_vendor_type(accept: str) -> bool:
    return "vnd.library" in accept.lower()


def iter_vendor_types(accept: str) -> Iterator[tuple[float, str, str | None]]:
    """Yields weight, media type and version number, which may be None."""
    for part in accept.split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if match := VENDOR_TYPE.fullmatch(name):
            weights = (QUALITY.fullmatch(parameter) for parameter in parameters)
            yield next((float(weight[1]) for weight in weights if weight), 1.0), name, match[1]


def may_name_version(query: str) -> bool:
    """A parameter's name may be percent-encoded."""
    return "version" in query or "%" in query


def pop_query_versions(query: str) -> tuple[list[str], str]:
    """Returns the values of `version`, and the query without them."""
    if not may_name_version(query):
        return [], query
    pairs = parse_qsl(query, keep_blank_values=True, encoding="latin-1")
    numbers = [value for name, value in pairs if name == "version"]
    others = [(name, value) for name, value in pairs if name != "version"]
    return numbers, urlencode(others, encoding="latin-1") if numbers else query

"""Chooses the version of each request and adds its headers to the response (specification, Section 9)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from library_site.db import integers
from library_site.http.errors import envelope_format
from library_site.http.request_log import Headers
from library_site.http.versions import API_ROOT, Version

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# Cached, because requests have only a few different texts.
parse_version_number = lru_cache(maxsize=100)(integers.parse_integer)

API_PREFIX = f"{API_ROOT}/"
VERSION_PATH = re.compile(rf"{API_ROOT}/v([^/]*)(/.*)?", re.DOTALL)
VENDOR_TYPE = re.compile(r"application/vnd\.library(?:\.v(.*))?\+json")
# RFC 9110, 12.4.2.
QUALITY = re.compile(r"q=(0(?:\.\d*)?|1(?:\.0*)?)")


class VersionChoice(NamedTuple):
    """`path` is the path below a version's home. `refusal` is the error if no version could be chosen."""

    version: Version
    path: str
    media_type: str = ""
    refusal: str = ""


def negotiate_version(
    application: "WSGIApplication", versions: Mapping[int, Version], default: int
) -> "WSGIApplication":
    """Reads the three selectors (path, Accept, query) and removes them from path and query.

    Sets `environ["library.version"]`. `default` is the number of the version for a request without a selector.
    """
    latest = versions[max(versions)]

    def wrapper(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        if not environ["PATH_INFO"].startswith(API_PREFIX):
            return application(environ, start_response)
        requested_address = environ["PATH_INFO"], environ.get("QUERY_STRING", "")
        version, path, media_type, refusal = choose_version(environ, versions, default)
        environ |= {
            "PATH_INFO": version.home + path,
            "library.requested_url": requested_address,
            "library.version": version,
            "library.refusal": refusal,
        }
        if is_own_type(environ.get("CONTENT_TYPE", ""), version.number):
            environ["CONTENT_TYPE"] = "application/json"
        if limit := version.body_limits.get(path.removesuffix("/")):
            environ["library.body_limit"] = limit
        extra_headers = version.build_headers(path, latest) if version.lifecycle.deprecated_on and not refusal else []
        if extra_headers or media_type:
            start_response = add_headers(start_response, extra_headers, media_type)
        return application(environ, start_response)

    return wrapper


def is_own_type(content_type: str, number: int) -> bool:
    """Tells whether a body has the vendor type of this version. Without a number it is of any."""
    if not has_vendor_type(content_type):
        return False
    match = VENDOR_TYPE.fullmatch(content_type.partition(";")[0].strip().lower())
    return match is not None and (match[1] is None or parse_version_number(match[1]) == number)


def add_headers(start_response: "StartResponse", extra_headers: Headers, media_type: str) -> "StartResponse":
    """Adds headers to a response, and gives JSON the media type that the client requested."""

    def start_extended_response(status: str, headers: Headers, *arguments: Any) -> Any:
        if media_type:
            headers = [set_media_type(header, media_type) for header in headers]
        return start_response(status, [*headers, *extra_headers], *arguments)

    return start_extended_response


def set_media_type(header: tuple[str, str], media_type: str) -> tuple[str, str]:
    return ("Content-Type", media_type) if header == ("Content-Type", "application/json") else header


def choose_version(environ: "WSGIEnvironment", versions: Mapping[int, Version], default: int) -> VersionChoice:
    """Returns the version that all selectors of a request agree on. Removes `version` from the query."""
    requested_path = environ["PATH_INFO"]
    if default in versions and names_no_version(environ):
        return VersionChoice(versions[default], requested_path.removeprefix(API_ROOT))
    segment = VERSION_PATH.fullmatch(requested_path)
    path = (segment[2] or "") if segment else requested_path.removeprefix(API_ROOT)
    if segment and VERSION_PATH.match(API_ROOT + path):
        # A path with two versions, such as /api/v1/v2/books, does not exist in any version.
        path = requested_path
    media_type, vendor_number = choose_vendor_type(environ.get("HTTP_ACCEPT", ""), versions)
    selectors = [*([segment[1]] if segment else []), *([vendor_number] if media_type else [])]
    numbers = {parse_version_number(text) for text in [*selectors, *pop_query_versions(environ)]} or {default}
    if len(numbers) > 1:
        return reject_version(path, "The request names more than one version", versions)
    number = numbers.pop()
    if number is None or number not in versions:
        return reject_version(path, "The request names no version that is served", versions)
    return VersionChoice(versions[number], path, media_type)


def names_no_version(environ: "WSGIEnvironment") -> bool:
    """Tells, as a fast check, that a request has no selector. It may return false although there is none."""
    return not (
        environ["PATH_INFO"].startswith(f"{API_PREFIX}v")
        or may_name_version(environ.get("QUERY_STRING", ""))
        or has_vendor_type(environ.get("HTTP_ACCEPT", ""))
    )


def reject_version(path: str, reason: str, versions: Mapping[int, Version]) -> VersionChoice:
    """Uses the latest version: it has all addresses and methods, and a 405 comes before this error."""
    served_numbers = ", ".join(str(number) for number in versions)
    substitute = replace(versions[max(versions)], error_format=envelope_format)
    return VersionChoice(substitute, path, refusal=f"{reason}. Served: {served_numbers}.")


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


def pop_query_versions(environ: "WSGIEnvironment") -> list[str]:
    query = environ.get("QUERY_STRING", "")
    if not may_name_version(query):
        return []
    pairs = parse_qsl(query, keep_blank_values=True, encoding="latin-1")
    numbers = [value for name, value in pairs if name == "version"]
    if numbers:
        others = [(name, value) for name, value in pairs if name != "version"]
        environ["QUERY_STRING"] = urlencode(others, encoding="latin-1")
    return numbers

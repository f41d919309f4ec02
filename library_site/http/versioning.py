"""Which version of the interface a request means, and what each answer of it says (specification, Section 9)."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from django.conf import settings

from library_site.db.integers import parse_integer
from library_site.http.errors import envelope_format
from library_site.http.versions import API_ROOT, Headers, Version

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


VERSION_PATH = re.compile(rf"{API_ROOT}/v([^/]*)(/.*)?", re.DOTALL)
VENDOR_TYPE = re.compile(r"application/vnd\.library(?:\.v(.*))?\+json")
# RFC 9110, 12.4.2.
QUALITY = re.compile(r"q=(0(?:\.\d*)?|1(?:\.0*)?)")


class VersionChoice(NamedTuple):
    """`path` is what follows a version's home; `refusal` says why none could be chosen."""

    version: Version
    path: str
    media_type: str = ""
    refusal: str = ""


def negotiate_version(
    application: "WSGIApplication", versions: Mapping[int, Version], default: int
) -> "WSGIApplication":
    """Turns the three selectors into one path; Django sees `environ["library.version"]` and no selector.

    `default` is the number of the version that a request without a selector gets.
    """
    latest = versions[max(versions)]

    def negotiate(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        if not environ["PATH_INFO"].startswith(f"{API_ROOT}/"):
            return application(environ, start_response)
        asked_for = environ["PATH_INFO"], environ.get("QUERY_STRING", "")
        version, path, media_type, refusal = choose_version(environ, versions, default)
        environ |= {
            "PATH_INFO": version.home + path,
            "library.asked_for": asked_for,
            "library.version": version,
            "library.refusal": refusal,
            "library.body_limit": version.body_limits.get(path.removesuffix("/"), settings.DATA_UPLOAD_MAX_MEMORY_SIZE),
        }
        more = [("Vary", "Accept"), *([] if refusal else version.headers(path, latest))]
        return application(environ, add_headers(start_response, more, media_type))

    return negotiate


def add_headers(start_response: "StartResponse", more: Headers, media_type: str) -> "StartResponse":
    """Adds headers to an answer, and gives JSON the type that the client asked for."""

    def started(status: str, headers: Headers, *arguments: Any) -> Callable[[bytes], object]:
        if media_type:
            headers = [set_media_type(header, media_type) for header in headers]
        return start_response(status, [*headers, *more], *arguments)

    return started


def set_media_type(header: tuple[str, str], media_type: str) -> tuple[str, str]:
    return ("Content-Type", media_type) if header == ("Content-Type", "application/json") else header


def choose_version(environ: "WSGIEnvironment", versions: Mapping[int, Version], default: int) -> VersionChoice:
    """The version that all selectors of a request agree on. `version` leaves the query."""
    asked_for = environ["PATH_INFO"]
    segment = VERSION_PATH.fullmatch(asked_for)
    path = (segment[2] or "") if segment else asked_for.removeprefix(API_ROOT)
    if VERSION_PATH.match(API_ROOT + path):
        # A second segment would lead from one version into another; nothing is at either.
        path = asked_for
    media_type, vendor_number = choose_vendor_type(environ.get("HTTP_ACCEPT", ""), versions)
    named = [*([segment[1]] if segment else []), *([vendor_number] if media_type else []), *pop_query_versions(environ)]
    numbers = {parse_integer(text) for text in named} or {default}
    if len(numbers) > 1:
        return refuse_version(path, "The request names more than one version", versions)
    number = numbers.pop()
    if number is None or number not in versions:
        return refuse_version(path, "The request names no version that is served", versions)
    return VersionChoice(versions[number], path, media_type)


def refuse_version(path: str, why: str, versions: Mapping[int, Version]) -> VersionChoice:
    """The latest stands in: it knows every address and method, for what outranks this refusal."""
    listed = ", ".join(str(number) for number in versions)
    standing_in = replace(versions[max(versions)], error_format=envelope_format)
    return VersionChoice(standing_in, path, refusal=f"{why}. Served: {listed}.")


def choose_vendor_type(accept: str, versions: Mapping[int, Version]) -> tuple[str, str]:
    """The preferred vendor type of an Accept header with its number, that of a served version before others."""
    # Most requests have none.
    if "vnd.library" not in accept.lower():
        return "", ""
    latest = str(max(versions))
    preferred = sorted(iter_vendor_types(accept.lower()), key=lambda one: -one[0])
    numbered = [(name, latest if number is None else number) for weight, name, number in preferred if weight]
    return next((one for one in numbered if parse_integer(one[1]) in versions), numbered[0] if numbered else ("", ""))


def iter_vendor_types(accept: str) -> Iterator[tuple[float, str, str | None]]:
    """Weight, media type and number, which may be absent."""
    for part in accept.split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if matched := VENDOR_TYPE.fullmatch(name):
            weights = (QUALITY.fullmatch(parameter) for parameter in parameters)
            yield next((float(weight[1]) for weight in weights if weight), 1.0), name, matched[1]


def pop_query_versions(environ: "WSGIEnvironment") -> list[str]:
    query = environ.get("QUERY_STRING", "")
    # Names are rarely written in percent signs, but may be.
    if "version" not in query and "%" not in query:
        return []
    pairs = parse_qsl(query, keep_blank_values=True, encoding="latin-1")
    numbers = [value for name, value in pairs if name == "version"]
    if numbers:
        others = [(name, value) for name, value in pairs if name != "version"]
        environ["QUERY_STRING"] = urlencode(others, encoding="latin-1")
    return numbers

"""Which version of the interface a request means, and what each answer of it says (specification, Section 9)."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.http import http_date

from library_site.db.integers import integer
from library_site.shapes import Shape, envelope

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

Headers = list[tuple[str, str]]

ROOT = "/api"
SEGMENT = re.compile(rf"{ROOT}/v([^/]*)(/.*)?", re.DOTALL)
VENDOR = re.compile(r"application/vnd\.library(?:\.v(.*))?\+json")
# RFC 9110, 12.4.2.
WEIGHT = re.compile(r"q=(0(?:\.\d*)?|1(?:\.0*)?)")


@dataclass(frozen=True)
class Lifecycle:
    """When a version ends, and where its clients read about it. Times are aware."""

    deprecated_on: datetime | None = None
    sunset_on: datetime | None = None
    migration_url: str = ""
    changelog_url: str = ""
    retired: bool = False

    def headers(self, number: int, successor: str) -> Headers:
        """RFC 9745 (Deprecation), RFC 8594 (Sunset), RFC 5829 (successor-version), RFC 7234, 5.5 (Warning).

        `successor` is a path, or empty.
        """
        if not self.deprecated_on:
            return []
        url = successor and f"{settings.PUBLIC_URL}{quote(successor.encode('latin-1'))}"
        given = {"deprecation": self.migration_url, "describedby": self.changelog_url, "successor-version": url}
        links = ", ".join(f'<{url}>; rel="{relation}"' for relation, url in given.items() if url)
        ends = [("Sunset", http_date(self.sunset_on.timestamp()))] if self.sunset_on else []
        return [
            ("Deprecation", f"@{int(self.deprecated_on.timestamp())}"),
            *ends,
            *([("Link", links)] if links else []),
            ("Warning", f'299 - "{self.notice(number)}"'),
        ]

    def notice(self, number: int) -> str:
        ends = f" and ends on {self.sunset_on:%Y-%m-%d}" if self.sunset_on else ""
        return f"Version {number} is deprecated from {self.deprecated_on:%Y-%m-%d} on{ends}"


@dataclass(frozen=True)
class Version:
    """`home` is where its addresses begin, without a slash at the end; `shape` words its errors.

    `larger_bodies` are the limits, in bytes, of addresses below its home that take more than others.
    """

    number: int
    home: str
    shape: Shape
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    larger_bodies: Mapping[str, int] = field(default_factory=dict)

    def headers(self, path: str, latest: "Version") -> Headers:
        """What its end adds to an answer from this path below a version's home."""
        return self.lifecycle.headers(self.number, f"{latest.home}{path}" if latest is not self else "")


class Choice(NamedTuple):
    """`path` is what follows a version's home; `refusal` says why none could be chosen."""

    version: Version
    path: str
    media_type: str = ""
    refusal: str = ""


def served(versions: Iterable[Version], lifecycles: Mapping[int, Lifecycle]) -> dict[int, Version]:
    """By number, those that are not retired, each with its lifecycle."""
    known = [replace(one, lifecycle=lifecycles.get(one.number, Lifecycle())) for one in versions]
    if strange := lifecycles.keys() - {version.number for version in known}:
        raise ImproperlyConfigured(f"API_V{min(strange)}_… is set, and there is no such version.")
    lasting = {version.number: version for version in known if not version.lifecycle.retired}
    if not lasting:
        raise ImproperlyConfigured("API_V1_RETIRED and the like leave no version to serve.")
    return lasting


def versioned(application: "WSGIApplication", versions: Mapping[int, Version], unnamed: int) -> "WSGIApplication":
    """Turns the three selectors into one path; Django sees `environ["library.version"]` and no selector.

    `unnamed` is the number that addresses mean which name none.
    """
    latest = versions[max(versions)]

    def chosen(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        if not environ["PATH_INFO"].startswith(f"{ROOT}/"):
            return application(environ, start_response)
        asked_for = environ["PATH_INFO"], environ.get("QUERY_STRING", "")
        version, path, media_type, refusal = choice(environ, versions, unnamed)
        environ |= {
            "PATH_INFO": version.home + path,
            "library.asked_for": asked_for,
            "library.version": version,
            "library.refusal": refusal,
            "library.body_limit": version.larger_bodies.get(
                path.removesuffix("/"), settings.DATA_UPLOAD_MAX_MEMORY_SIZE
            ),
        }
        more = [("Vary", "Accept"), *([] if refusal else version.headers(path, latest))]
        return application(environ, extended(start_response, more, media_type))

    return chosen


def extended(start_response: "StartResponse", more: Headers, media_type: str) -> "StartResponse":
    """Adds headers to an answer, and gives JSON the type that the client asked for."""

    def started(status: str, headers: Headers, *arguments: Any) -> Callable[[bytes], object]:
        if media_type:
            headers = [typed(header, media_type) for header in headers]
        return start_response(status, [*headers, *more], *arguments)

    return started


def typed(header: tuple[str, str], media_type: str) -> tuple[str, str]:
    return ("Content-Type", media_type) if header == ("Content-Type", "application/json") else header


def choice(environ: "WSGIEnvironment", versions: Mapping[int, Version], unnamed: int) -> Choice:
    """The version that all selectors of a request agree on. `version` leaves the query."""
    asked_for = environ["PATH_INFO"]
    segment = SEGMENT.fullmatch(asked_for)
    path = (segment[2] or "") if segment else asked_for.removeprefix(ROOT)
    if SEGMENT.match(ROOT + path):
        # A second segment would lead from one version into another; nothing is at either.
        path = asked_for
    media_type, vendor_number = vendor(environ.get("HTTP_ACCEPT", ""), versions)
    named = [*([segment[1]] if segment else []), *([vendor_number] if media_type else []), *take_query_numbers(environ)]
    numbers = {integer(text) for text in named} or {unnamed}
    if len(numbers) > 1:
        return refused(path, "The request names more than one version", versions)
    number = numbers.pop()
    if number is None or number not in versions:
        return refused(path, "The request names no version that is served", versions)
    return Choice(versions[number], path, media_type)


def refused(path: str, why: str, versions: Mapping[int, Version]) -> Choice:
    """The latest stands in: it knows every address and method, for what outranks this refusal."""
    listed = ", ".join(str(number) for number in versions)
    standing_in = replace(versions[max(versions)], shape=envelope)
    return Choice(standing_in, path, refusal=f"{why}. Served: {listed}.")


def vendor(accept: str, versions: Mapping[int, Version]) -> tuple[str, str]:
    """The preferred vendor type of an Accept header with its number, that of a served version before others."""
    # Most requests have none.
    if "vnd.library" not in accept.lower():
        return "", ""
    latest = str(max(versions))
    preferred = sorted(vendor_types(accept.lower()), key=lambda one: -one[0])
    numbered = [(name, latest if number is None else number) for weight, name, number in preferred if weight]
    return next((one for one in numbered if integer(one[1]) in versions), numbered[0] if numbered else ("", ""))


def vendor_types(accept: str) -> Iterator[tuple[float, str, str | None]]:
    """Weight, media type and number, which may be absent."""
    for part in accept.split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if matched := VENDOR.fullmatch(name):
            weights = (WEIGHT.fullmatch(parameter) for parameter in parameters)
            yield next((float(weight[1]) for weight in weights if weight), 1.0), name, matched[1]


def take_query_numbers(environ: "WSGIEnvironment") -> list[str]:
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

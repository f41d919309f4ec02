"""The compiled path answers the requests of real clients, header for header as Django does in each configuration."""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.core.signals import request_started
from django.utils import timezone

from library_site.rate_limit.counters import build_counter
from tests.support.applications import Answer, ApplicationVariant
from tests.support.credentials import PLAIN_NAMES, Credentials
from tests.support.rate_limit import count_requests
from tests.support.requests import Request
from tests.support.small_library import NEW_BOOK, VERSION_2, restore_books

CORS = "corsheaders.middleware.CorsMiddleware"
# As the clients and the proxies of today send them.
CLIENTS: dict[str, dict[str, str]] = {
    "requests": {"Accept": "*/*", "Accept-Encoding": "gzip, deflate, br", "Connection": "keep-alive"},
    "Node's fetch": {"Accept": "*/*", "Accept-Language": "*", "Sec-Fetch-Mode": "cors", "User-Agent": "node"},
    "axios": {"Accept": "application/json, text/plain, */*", "User-Agent": "axios/1.7.7"},
    "Chromium": {
        "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
        "Accept-Language": "de-DE,de;q=0.9",
        "Cookie": "theme=dark",
        "Sec-CH-UA": '"Chromium";v="131"',
        "Sec-Fetch-Dest": "document",
        "Upgrade-Insecure-Requests": "1",
    },
    "Go": {"User-Agent": "Go-http-client/1.1", "Accept-Encoding": "gzip"},
    "nginx": {"X-Real-IP": "192.0.2.1", "X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "http"},
    "an ALB": {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https", "X-Forwarded-Port": "443"},
    "a CDN": {"Via": "1.1 cache", "CDN-Loop": "cdn", "CF-Ray": "230b030023ae2822-SJC", "X-Forwarded-Proto": "https"},
    "a page of the same site": {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"},
    "a range": {"Range": "bytes=0-1"},
}
SECURITY = settings.MIDDLEWARE.index("django.middleware.security.SecurityMiddleware")
WITH_CORS = [*settings.MIDDLEWARE[:SECURITY], CORS, *settings.MIDDLEWARE[SECURITY:]]
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "CORS": {
        "CORS_ALLOWED_ORIGINS": ["http://127.0.0.1:8000"],
        "MIDDLEWARE": WITH_CORS,
        "SHIPPED": SimpleNamespace(**{**vars(settings.SHIPPED), "MIDDLEWARE": WITH_CORS}),
    },
    "HTTPS": {
        "SECURE_SSL_REDIRECT": True,
        "SECURE_HSTS_SECONDS": 3600,
        "SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https"),
    },
    "GZIP": {"GZIP": True},
    "protected": {"LIBRARY_ACCESS": "protected"},
    "a limit": {"API_RATE_LIMIT": (1000, 60), "METRICS_TOKEN": "x" * 32},
    "a limit that is reached": {"API_RATE_LIMIT": (2, 60)},
}
REQUESTS = [
    Request("GET", "/books", query="limit=2"),
    Request("GET", "/books", query="limit=0"),
    Request("GET", "/books/1"),
    Request("GET", "/books/1", headers={"If-None-Match": "*"}),
    Request("GET", "/books/99"),
    Request("PUT", "/books/1", body=NEW_BOOK),
    Request("POST", "/books", body=NEW_BOOK),
    Request("DELETE", "/books/2"),
    Request("GET", "/books", VERSION_2, "limit=1&count=true&fields=id,title"),
    Request("GET", "/books", VERSION_2, headers={"If-None-Match": "*"}),
    Request("GET", "/books/1", VERSION_2, "fields=id"),
    Request("PATCH", "/books/1", VERSION_2, body=b'{"available": false}', headers={"If-Match": '"v2-1-1"'}),
    Request("PUT", "/books/1", VERSION_2, body=b'{"year": 1}'),
]
# A client sends one of so many shares of the requests in a configuration.
SHARES = 5


@pytest.fixture(params=CONFIGURATIONS)
def variants(
    request: pytest.FixtureRequest, settings: Any, static_files: None, monkeypatch: pytest.MonkeyPatch
) -> tuple[ApplicationVariant, ApplicationVariant]:
    """Both variants in each configuration."""
    for name, value in CONFIGURATIONS[request.param].items():
        setattr(settings, name, value)
    if settings.API_RATE_LIMIT:
        count_requests(monkeypatch, lambda: 1.0)
    return ApplicationVariant(compiled=True), ApplicationVariant(compiled=False)


def test_each_client_is_answered_header_for_header(
    variants: tuple[ApplicationVariant, ApplicationVariant],
    library: Credentials,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In each configuration half of the clients send all requests, each some of them with some credential."""
    now = timezone.now()
    monkeypatch.setattr("django.utils.timezone.now", lambda: now)
    differences = []
    first = list(CONFIGURATIONS).index(request.node.callspec.params["variants"])
    for number, (client, headers) in enumerate([*CLIENTS.items()][first % 2 :: 2], first):
        requests = [item._replace(headers={**headers, **item.headers}) for item in REQUESTS[number % SHARES :: SHARES]]
        credentials = library[PLAIN_NAMES[number % len(PLAIN_NAMES)]]
        responses = [list(send_all(variant, requests, credentials)) for variant in variants]
        differences += [
            (client, *different) for different in zip(requests, *responses, strict=True) if different[1] != different[2]
        ]
    assert not differences


def send_all(variant: ApplicationVariant, requests: list[Request], credentials: Mapping[str, str]) -> Iterator[Answer]:
    build_counter.cache_clear()
    restore_books()
    with variant.override_settings():
        for request in requests:
            yield variant.send(request, credentials)


@pytest.mark.parametrize("variants", ["as it comes", "a limit", "HTTPS"], indirect=True)
def test_no_header_of_a_client_needs_django(
    variants: tuple[ApplicationVariant, ApplicationVariant], library: Credentials
) -> None:
    seen: list[str] = []

    def record_request(environ: Mapping[str, Any], **_: Any) -> None:
        seen.append(environ["HTTP_USER_AGENT"])

    compiled, _ = variants
    request_started.connect(record_request)
    try:
        with compiled.override_settings():
            for client, client_headers in CLIENTS.items():
                headers = {**client_headers, "User-Agent": client, "X-Forwarded-Proto": "https"}
                for request in (REQUESTS[0], Request("GET", "/books/1"), Request("GET", "/books/1", VERSION_2)):
                    compiled.send(request._replace(headers=headers), library["key"])
    finally:
        request_started.disconnect(record_request)
    assert not seen

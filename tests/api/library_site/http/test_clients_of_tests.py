"""The clients with which apps are tested get the responses of a served library, header for header."""

import json
from typing import Any

import httpx
import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient, RequestsClient

from tests.support.books import build_book
from tests.support.small_library import restore_books

BODY = build_book(isbn="9790000000000")
# Method, address, body and headers.
REQUESTS: list[tuple[str, str, Any, dict[str, str]]] = [
    ("GET", "/api/books?limit=1", None, {}),
    ("GET", "/api/v2/books?fields=id", None, {}),
    ("GET", "/api/books/1?version=2", None, {}),
    ("GET", "/api/books/1/", None, {"Accept": "application/vnd.library.v2+json"}),
    ("GET", "/api/v2/books/1", None, {"If-None-Match": "*"}),
    ("GET", "/api/v3/books", None, {}),
    ("GET", "/api/v2/nothing", None, {}),
    ("GET", "/api/v2/books", None, {"Host": "evil.example"}),
    ("HEAD", "/api/v2/books/1", None, {}),
    ("POST", "/api/v2/books", BODY, {}),
    ("POST", "/api/books", {"title": 1}, {}),
    ("PATCH", "/api/v2/books/1", {"year": 1}, {"If-Match": '"v2-1-9"'}),
    ("GET", "/livez", None, {}),
]
HEADERS = {"Host": "127.0.0.1", "X-Request-ID": "one-and-the-same", "Accept": "*/*"}


def send_by_httpx(client: httpx.Client, method: str, address: str, body: Any, headers: dict[str, str]) -> Any:
    return client.request(method, address, json=body, headers=headers)


def send_by_requests(client: RequestsClient, method: str, address: str, body: Any, headers: dict[str, str]) -> Any:
    return client.request(method, f"http://127.0.0.1{address}", json=body, headers=headers)


def send_by_django(client: Any, method: str, address: str, body: Any, headers: dict[str, str]) -> Any:
    content_type = {} if body is None else {"content_type": "application/json"}
    return client.generic(method, address, "" if body is None else json.dumps(body), headers=headers, **content_type)


def test_clients_of_tests_get_what_a_served_library_answers(
    api: httpx.Client, application: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    monkeypatch.setattr("django.utils.timezone.now", lambda: now)
    clients = [
        (send_by_httpx, api),
        (send_by_django, Client()),
        (send_by_django, APIClient()),
        (send_by_requests, RequestsClient()),
    ]
    for method, address, body, headers in REQUESTS:
        responses = []
        for send, client in clients:
            restore_books()
            response = send(client, method, address, body, {**HEADERS, **headers})
            fields = {name.lower(): value for name, value in response.headers.items()}
            content = b"" if method == "HEAD" else response.content
            responses.append((response.status_code, fields, content))
        assert responses == responses[:1] * len(clients), (method, address)

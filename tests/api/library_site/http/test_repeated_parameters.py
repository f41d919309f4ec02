"""Version 2: a parameter that takes several values may be repeated, and one that takes a single value may not."""

from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest
from django.contrib.auth.models import User

from tests.support.books import build_book
from tests.support.endpoints import create_endpoint
from tests.support.oauth_flows import create_key_header
from tests.support.openapi import V2_DOCUMENT_URL
from tests.support.pages import build_validation_error, parse_error

BOOKS, EVENTS = "/api/v2/books", "/api/v2/events"
METHODS = ("get", "post", "put", "patch", "delete")


class Parameter(NamedTuple):
    """A parameter of the query, as the document has it."""

    method: str
    address: str
    name: str
    is_list: bool


@pytest.fixture
def key(db: None) -> dict[str, str]:
    return create_key_header(User.objects.create_superuser("root"), "read write webhooks")


@pytest.fixture
def changed_book(api: httpx.Client, key: dict[str, str]) -> int:
    book = api.post(BOOKS, json=build_book(), headers=key).json()
    api.patch(f"{BOOKS}/{book['id']}", json={"year": 1}, headers=key)
    return int(book["id"])


def iter_parameters(api: httpx.Client) -> Iterator[Parameter]:
    for address, operations in api.get(V2_DOCUMENT_URL).json()["paths"].items():
        for method in METHODS:
            for parameter in operations.get(method, {}).get("parameters", []):
                if parameter["in"] == "query":
                    is_list = parameter["schema"].get("type") == "array"
                    yield Parameter(method, address, parameter["name"], is_list)


def test_a_parameter_of_one_value_is_not_repeated(api: httpx.Client, key: dict[str, str], changed_book: int) -> None:
    endpoint = create_endpoint(User.objects.get(username="root"))
    singles = [parameter for parameter in iter_parameters(api) if not parameter.is_list]
    assert len(singles) > 20
    refused = []
    for method, address, name, _ in singles:
        path = address.format(book_id=changed_book, webhook_id=endpoint.pk)
        response = api.request(method, f"{path}?{name}=1&{name}=1", headers=key)
        if parse_error(response) == build_validation_error(name) and "more than once" in response.text:
            refused.append((method, address, name))
    assert refused == [(method, address, name) for method, address, name, _ in singles]


def test_these_parameters_take_several_values(api: httpx.Client) -> None:
    lists = [parameter[:3] for parameter in iter_parameters(api) if parameter.is_list]
    assert lists == [("get", BOOKS, "fields"), ("get", f"{BOOKS}/{{book_id}}", "fields"), ("get", EVENTS, "kinds")]


def test_the_union_of_fields_counts(api: httpx.Client, changed_book: int) -> None:
    """On the compiled path, and on Django's."""
    shown = {"id": changed_book, "title": build_book()["title"]}
    for query in ("fields=id,title", "fields=id&fields=title,id"):
        for slow in ({}, {"X-Unknown": "Django answers"}):
            assert api.get(f"{BOOKS}/{changed_book}?{query}", headers=slow).json() == shown
            assert api.get(f"{BOOKS}?{query}", headers=slow).json()["results"] == [shown]
    api.post(BOOKS, json=build_book(isbn="another"))
    link = api.get(f"{BOOKS}?fields=id&limit=1&fields=year").json()["next"]
    assert api.get(link).json()["results"][0].keys() == {"id", "year"}


def test_each_of_several_values_is_checked(api: httpx.Client) -> None:
    for query in ("fields=id&fields=titel", "fields=id&fields="):
        response = api.get(f"{BOOKS}?{query}")
        assert (response.status_code, response.json()["error"]["details"][0]["field"]) == (422, "fields")


def test_what_is_repeated_comes_after_what_is_unknown(api: httpx.Client) -> None:
    assert api.get(f"{BOOKS}?limit=1&limit=1&limits=1").status_code == 400
    assert parse_error(api.get(f"{BOOKS}?limit=1&limit=1&sort=id&sort=id"))[2] == ["limit", "sort"]
    assert api.get(f"{BOOKS}/77?sort=id&sort=id").status_code == 404


def test_the_last_value_counts_in_version_1(api: httpx.Client, changed_book: int) -> None:
    assert len(api.get("/api/books?limit=0&limit=1").json()) == 1

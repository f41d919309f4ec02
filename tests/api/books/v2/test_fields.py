"""GET /api/v2/books/{book_id} with some of its fields."""

from typing import Any

import httpx
import pytest

from tests.support.api_versions import VERSION_2
from tests.support.pages import build_validation_error, parse_error

FIELDS = "id title author year isbn isbn13 genre available created_at updated_at version".split()
STALE = '"of another time"'

pytestmark = pytest.mark.parametrize("version", [VERSION_2], ids=["v2"])


@pytest.mark.parametrize(
    "names",
    [*([name] for name in FIELDS), ["id", "title"], ["title", "id"], ["version", "isbn13", "available"], FIELDS],
    ids=",".join,
)
def test_a_client_may_select_fields(
    api: httpx.Client, address: str, stored_book: dict[str, Any], names: list[str]
) -> None:
    response = api.get(address, params={"fields": ",".join(names)})
    assert (response.status_code, response.json()) == (200, {name: stored_book[name] for name in names})


@pytest.mark.parametrize("array", ["fields[]=id&fields[]=title", "fields%5B0%5D=id&fields%5B1%5D=title"])
def test_an_array_of_a_client_is_a_repeated_parameter(
    api: httpx.Client, address: str, stored_book: dict[str, Any], array: str
) -> None:
    """As axios and PHP write one. A parameter of one value is no array."""
    assert list(api.get(f"{address}?{array}").json()) == ["id", "title"]
    assert list(api.get(f"/api/v2/books?{array}&limit=1").json()["results"][0]) == ["id", "title"]
    assert api.get(f"/api/v2/books?{array.replace('fields', 'title')}").status_code == 400
    assert api.get(f"{address}?{array.replace('fields', 'fields[x]')}").status_code == 400


def test_a_field_named_twice_is_shown_once(api: httpx.Client, address: str, stored_book: dict[str, Any]) -> None:
    assert api.get(f"{address}?fields=id,title,id").text == api.get(f"{address}?fields=id,title").text


def test_an_unknown_field_is_answered_with_the_nearest(api: httpx.Client, address: str) -> None:
    response = api.get(f"{address}?fields=id,tittle,created", headers={"X-Request-ID": "pick-of-members"})
    assert response.status_code == 422
    assert response.json() == {
        "error": {
            "code": "VALIDATION_ERROR",
            "message": "The request is not valid",
            "details": [
                {"field": "fields", "message": '"tittle": It is not known here; the nearest name is title.'},
                {"field": "fields", "message": '"created": It is not known here; the nearest name is created_at.'},
            ],
            "requestId": "pick-of-members",
        }
    }


@pytest.mark.parametrize(
    "value", ["", ",", "id,", "id,,title", "ID", "%20id", "id;title", "%00", "*", "title_folded", "x" * 5_000]
)
def test_only_existing_fields_may_be_selected(api: httpx.Client, address: str, value: str) -> None:
    status, code, fields = parse_error(api.get(f"{address}?fields={value}"))
    assert (status, code, set(fields)) == (422, "VALIDATION_ERROR", {"fields"})


def test_the_etag_is_the_same_whatever_fields_are_selected(api: httpx.Client, address: str, etag: str) -> None:
    assert api.get(f"{address}?fields=title").headers["ETag"] == etag
    assert api.get(f"{address}?fields=title", headers={"If-None-Match": etag}).status_code == 304


@pytest.mark.parametrize(
    ("name", "nearest"), [("field", "fields"), ("feilds", "fields"), ("FIELDS", "fields"), ("limit", "fields")]
)
def test_an_unknown_parameter_is_answered_with_the_nearest(
    api: httpx.Client, address: str, name: str, nearest: str
) -> None:
    response = api.get(f"{address}?fields=id&{name}=1")
    assert parse_error(response) == (400, "UNKNOWN_PARAMETER", [name])
    assert nearest in response.json()["error"]["details"][0]["message"]


def test_a_bad_query_outranks_the_state(api: httpx.Client, address: str) -> None:
    assert parse_error(api.get(f"{address}?fields=nothing", headers={"If-Match": STALE})) == build_validation_error(
        "fields"
    )

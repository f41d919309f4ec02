"""API keys over HTTP: users create, read and revoke their own keys."""

from datetime import timedelta
from typing import Any

import httpx
from django.contrib.auth.models import User
from django.utils import timezone

from oauth import api_keys
from oauth.credentials import build_challenge
from oauth.models import APIKey
from tests.support.books import build_book
from tests.support.credentials import create_app_header
from tests.support.oauth_flows import (
    create_key_header,
    create_librarian,
    create_public_app,
)

KEYS = "/api/v2/api-keys"


def create_key_owner(name: str = "librarian") -> User:
    """Returns a user who may make keys, too."""
    return create_librarian(name, "Developers")


def create_key(api: httpx.Client, headers: dict[str, str], **fields: Any) -> dict[str, Any]:
    response = api.post(KEYS, json={"name": "Night import", "scopes": "read", **fields}, headers=headers)
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    return body


def test_a_new_key_is_shown_once_and_works(api: httpx.Client) -> None:
    owner = create_key_owner()
    response = api.post(KEYS, json={"name": "Night import", "scopes": "write read"}, headers=create_key_header(owner))
    key = response.json()
    stored = APIKey.objects.get(prefix=key["id"])
    assert response.status_code == 201
    assert response.headers["Location"] == f"{KEYS}/{key['id']}"
    assert response.headers["Cache-Control"] == "no-store"
    assert key == {
        "id": stored.prefix,
        "name": "Night import",
        "scopes": "read write",
        "created_at": stored.created_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "expires_at": None,
        "last_used_at": None,
        "key": key["key"],
    }
    assert key["key"] not in str(APIKey.objects.values())
    assert api.post("/api/books", json=build_book(), headers={"X-API-Key": key["key"]}).status_code == 201


def test_reading_a_key_does_not_show_it(api: httpx.Client) -> None:
    key_header = create_key_header(create_key_owner())
    key = create_key(api, key_header)
    text = key.pop("key")
    detail_response = api.get(f"{KEYS}/{key['id']}", headers=key_header)
    list_response = api.get(KEYS, headers=key_header)
    assert detail_response.json() == key
    assert list_response.json()["results"][1] == key
    assert {"next": None, "previous": None}.items() <= list_response.json().items()
    assert text not in detail_response.text + list_response.text


def test_no_key_has_more_scopes_than_the_key_that_made_it(api: httpx.Client) -> None:
    key_header = create_key_header(create_key_owner(), "read")
    response = api.post(KEYS, json={"name": "More", "scopes": "read write"}, headers=key_header)
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "FORBIDDEN"
    assert response.headers["WWW-Authenticate"] == build_challenge(error="insufficient_scope", scope="write")
    assert APIKey.objects.count() == 1


def test_a_key_does_not_outlive_the_key_that_made_it(api: httpx.Client) -> None:
    key_header = create_key_header(create_key_owner(), expires_at=timezone.now() + timedelta(days=1))
    child = create_key(api, key_header, expires_at="2199-01-01T00:00:00Z")
    grandchild = create_key(api, {"X-API-Key": child["key"]})
    first = APIKey.objects.get(name="Test")
    assert APIKey.objects.get(prefix=grandchild["id"]).expires_at == first.expires_at
    assert api.delete(f"{KEYS}/{first.prefix}", headers=key_header).status_code == 204
    assert api.get("/api/books", headers={"X-API-Key": grandchild["key"]}).status_code == 401


def test_a_key_is_seen_and_revoked_by_its_owner_and_the_app_that_made_it(api: httpx.Client) -> None:
    owner = create_key_owner()
    key_header, app_header = create_key_header(owner), create_app_header(owner, create_public_app())
    own, other = create_key(api, app_header), APIKey.objects.get(name="Test").prefix
    assert [key["id"] for key in api.get(KEYS, headers=app_header).json()["results"]] == [own["id"]]
    stranger = create_key_header(create_key_owner("other"))
    assert [key["name"] for key in api.get(KEYS, headers=stranger).json()["results"]] == ["Test"]
    for headers, key_id in ((app_header, other), (stranger, other), (stranger, own["id"])):
        assert api.get(f"{KEYS}/{key_id}", headers=headers).status_code == 404
        assert api.delete(f"{KEYS}/{key_id}", headers=headers).status_code == 404
    weak = create_key_header(owner, "read")
    assert api.delete(f"{KEYS}/{other}", headers=weak).status_code == 403
    assert api.delete(f"{KEYS}/{own['id']}", headers=app_header).status_code == 204
    response = api.delete(f"{KEYS}/{other}", headers=key_header)
    assert (response.status_code, response.content) == (204, b"")
    assert api.get("/api/books", headers=key_header).status_code == 401


def test_the_invalid_field_of_a_body_is_named(api: httpx.Client) -> None:
    key_header = create_key_header(create_key_owner())
    changes: list[tuple[str, Any]] = [
        *(("name", value) for value in ("", "x" * 101, 7, "a\0b")),
        *(("scopes", value) for value in ("", "read all", ["read"])),
        *(("expires_at", value) for value in ("2001-01-01T00:00:00Z", "soon", "2199-01-01", "2199-01-01T00:00:00", 7)),
        ("scope", "read"),
    ]
    for field, value in changes:
        response = api.post(KEYS, json={"name": "A", "scopes": "read", field: value}, headers=key_header)
        assert response.status_code == 422, (field, value)
        assert {detail["field"] for detail in response.json()["error"]["details"]} == {field}, value
    assert APIKey.objects.count() == 1


def test_nobody_has_more_than_a_hundred_keys(api: httpx.Client) -> None:
    owner = create_key_owner()
    key_header = create_key_header(owner)
    key = APIKey.objects.get()
    APIKey.objects.bulk_create(
        APIKey(owner=owner, prefix=str(number), digest=key.digest, scopes="read", created_at=key.created_at)
        for number in range(api_keys.MAX_KEYS_PER_USER - 1)
    )
    response = api.post(KEYS, json={"name": "One more", "scopes": "read"}, headers=key_header)
    assert response.status_code == 409
    assert response.json()["error"]["message"] == "You have 100 API keys: revoke one first"

"""A shared cache may not store what is answered to a credential (RFC 9111, 3.5 and 5.2.2.7)."""

from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User

from tests.support.forged_tokens import build_claims, forge_token
from tests.support.oauth_flows import build_bearer_header, create_key_header, create_librarian

pytestmark = pytest.mark.database_independent

ADDRESSES = ["/api/books", "/api/v2/books", "/api/books/99999999", "/api/v2/events", "/api/v2/nothing"]


def create_token_header(user: User) -> dict[str, str]:
    return build_bearer_header(forge_token(build_claims(user.pk, scope="read write webhooks")))


def get_vary(answer: httpx.Response) -> list[str]:
    return [name.strip() for name in answer.headers.get("Vary", "").split(",")]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize(
    ("create_header", "name"), [(create_token_header, "Authorization"), (create_key_header, "X-API-Key")]
)
def test_an_answer_to_a_credential_is_private(api: httpx.Client, address: str, create_header: Any, name: str) -> None:
    answer = api.get(address, headers=create_header(create_librarian()))
    assert answer.headers["Cache-Control"] == "private"
    assert get_vary(answer) == ["Accept", name]


def test_an_answer_that_says_no_change_is_private(api: httpx.Client, book: dict[str, Any]) -> None:
    headers = {**create_key_header(create_librarian()), "If-None-Match": "*"}
    answer = api.get(f"/api/books/{book['id']}", headers=headers)
    assert (answer.status_code, answer.headers["Cache-Control"]) == (304, "private")


def test_a_refused_credential_is_private(api: httpx.Client) -> None:
    answer = api.get("/api/books", headers={"Authorization": "Bearer x", "X-API-Key": "y"})
    assert (answer.status_code, answer.headers["Cache-Control"]) == (401, "private")
    assert get_vary(answer) == ["Accept", "Authorization", "X-API-Key"]


def test_a_stricter_rule_of_the_answer_stays(api: httpx.Client) -> None:
    answer = api.post("/oauth/token", headers={"Authorization": "Basic x"})
    assert answer.headers.get_list("Cache-Control") == ["no-store"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_other_answers_may_be_stored(api: httpx.Client, address: str) -> None:
    answer = api.get(address)
    assert "Cache-Control" not in answer.headers
    assert get_vary(answer) == ["Accept"]

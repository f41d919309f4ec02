"""Malformed and hostile requests cause no failure."""

from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client

WRONG_KEYS = ["abc", "\0", "9" * 23, "9" * 5000, ""]


@pytest.mark.parametrize("key", [r'"\000aaaaaaaaaa"', "a" * 5000, "'; --", "%00%00%00%00%00%00%00%00%00"])
def test_an_invalid_session_is_ignored(api: httpx.Client, key: str) -> None:
    response = api.get("/admin/", headers={"Cookie": f"sessionid={key}"})
    assert response.headers["Location"] == "/admin/login/?next=/admin/"


@pytest.mark.parametrize(
    "query",
    [
        "created_at__year=0",
        "created_at__iso_year=999999",
        "created_at__gte=0001-01-01T00:00:00%2B23:59",
        "created_at__lt=9999-12-31T23:59:59-23:59",
        "created_at__contains=%00",
        "title__regex=(",
        "id__in=",
        "q=%00",
        "q=" + "word+" * 1200,
        "q=" + "a" * 60_000,
        "o=abc",
        "o=99",
        "p=9999999999999999999",
        "e=1",
    ],
)
def test_no_address_of_the_admin_fails(admin_client: Client, query: str) -> None:
    response: Any = admin_client.get(f"/admin/books/book/?{query}", follow=True)
    assert response.status_code in (200, 400)


@pytest.mark.parametrize(
    "query",
    [
        "last_login__year=0",
        "date_joined__iso_year=999999",
        "username=%00",
        "username__contains=%00",
        "username__regex=(",
        "groups__id__exact=" + "9" * 23,
        "is_staff__exact=%00",
        "q=%00",
    ],
)
def test_no_address_of_the_user_admin_fails(admin_client: Client, query: str) -> None:
    response: Any = admin_client.get(f"/admin/auth/user/?{query}", follow=True)
    assert response.status_code in (200, 400)


@pytest.mark.parametrize(
    ("changelist", "action", "pks"),
    [
        ("books/book", "mark_lent", WRONG_KEYS),
        ("books/book", "mark_available", ["\0"]),
        ("books/book", "delete_books", ["\0"]),
        ("auth/user", "delete_selected", WRONG_KEYS),
        ("auth/group", "delete_selected", ["\0"]),
    ],
)
def test_a_selection_of_nothing_changes_nothing(
    admin_client: Client, changelist: str, action: str, pks: list[str]
) -> None:
    for pk in pks:
        form = {"action": action, "_selected_action": pk}
        response: Any = admin_client.post(f"/admin/{changelist}/", form, follow=True)
        assert (pk, "Nothing was changed: what was selected does not exist." in response.content.decode()) == (pk, True)


@pytest.mark.parametrize("field", ["groups", "user_permissions"])
@pytest.mark.parametrize("pk", ["abc", "\0", "9" * 23, "-" + "9" * 23, "9" * 5000, ""])
def test_nobody_is_given_what_does_not_exist(admin_client: Client, admin_user: User, field: str, pk: str) -> None:
    for page in ("add/", f"{admin_user.pk}/change/"):
        response = admin_client.post(f"/admin/auth/user/{page}", {"username": "jane", field: pk})
        assert response.status_code == 200
    assert list(User.objects.all()) == [admin_user]


@pytest.mark.parametrize("page", ["change", "delete"])
@pytest.mark.parametrize("name", ["", "%00", "password", "abc"])
def test_the_page_of_a_row_takes_no_other_column(admin_client: Client, admin_user: User, page: str, name: str) -> None:
    response = admin_client.get(f"/admin/auth/user/{admin_user.pk}/{page}/?_to_field={name}")
    assert response.status_code == (400 if name else 200)

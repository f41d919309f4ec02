"""Malformed and hostile requests cause no failure."""

from itertools import product
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client


@pytest.mark.parametrize("key", [r'"\000aaaaaaaaaa"', "a" * 5000, "'; --", "%00%00%00%00%00%00%00%00%00"])
def test_an_invalid_session_is_ignored(api: httpx.Client, key: str) -> None:
    response = api.get("/admin/", headers={"Cookie": f"sessionid={key}"})
    assert response.headers["Location"] == "/admin/login/?next=/admin/"


ODD_ADDRESSES = [
    *(
        f"books/book/?{query}"
        for query in (
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
        )
    ),
    *(
        f"auth/user/?{query}"
        for query in (
            "last_login__year=0",
            "date_joined__iso_year=999999",
            "username=%00",
            "username__regex=(",
            "groups__id__exact=" + "9" * 23,
            "is_staff__exact=%00",
            "q=%00",
        )
    ),
]


@pytest.mark.parametrize("address", ODD_ADDRESSES)
def test_no_address_of_the_admin_fails(admin_client: Client, address: str) -> None:
    response: Any = admin_client.get(f"/admin/{address}", follow=True)
    assert response.status_code in (200, 400)


ACTIONS = [
    ("books/book", "mark_lent"),
    ("books/book", "mark_available"),
    ("books/book", "delete_books"),
    ("auth/user", "delete_selected"),
    ("auth/group", "delete_selected"),
]


@pytest.mark.parametrize(("changelist", "action"), ACTIONS)
def test_a_selection_of_nothing_changes_nothing(admin_client: Client, changelist: str, action: str) -> None:
    for pk in ("abc", "\0", "9" * 23, "9" * 5000, ""):
        form = {"action": action, "_selected_action": pk}
        response: Any = admin_client.post(f"/admin/{changelist}/", form, follow=True)
        assert "Nothing was changed: what was selected does not exist." in response.content.decode(), pk


@pytest.mark.parametrize("field", ["groups", "user_permissions"])
def test_nobody_is_given_what_does_not_exist(admin_client: Client, admin_user: User, field: str) -> None:
    for page, pk in product(
        ("add/", f"{admin_user.pk}/change/"), ("abc", "\0", "9" * 23, "-" + "9" * 23, "9" * 5000, "")
    ):
        response = admin_client.post(f"/admin/auth/user/{page}", {"username": "jane", field: pk})
        assert response.status_code == 200
    assert list(User.objects.all()) == [admin_user]


@pytest.mark.parametrize("page", ["change", "delete"])
def test_the_page_of_a_row_takes_no_other_column(admin_client: Client, admin_user: User, page: str) -> None:
    for name in ("", "%00", "password", "abc"):
        response = admin_client.get(f"/admin/auth/user/{admin_user.pk}/{page}/?_to_field={name}")
        assert response.status_code == (400 if name else 200), name

"""Malformed and hostile requests cause no failure."""

from typing import Any

from django.contrib.auth.models import User
from django.contrib.messages import get_messages
from django.test import Client


def test_an_invalid_session_is_ignored(client: Client, db: None) -> None:
    for key in (r'"\000aaaaaaaaaa"', "a" * 5000, "'; --", "%00%00%00%00%00%00%00%00%00"):
        response = client.get("/admin/", headers={"Cookie": f"sessionid={key}"})
        assert response["Location"] == "/admin/login/?next=/admin/", key[:20]


ODD_QUERIES = {
    "books/book": [
        "created_at__year=0",
        "created_at__gte=0001-01-01T00:00:00%2B23:59",
        "created_at__contains=%00",
        "title__regex=(",
        "id__in=",
        "q=%00",
        "p=9999999999999999999",
    ],
    "auth/user": [
        "date_joined__iso_year=999999",
        "groups__id__exact=" + "9" * 23,
        "q=%00",
    ],
}


def test_no_query_of_the_admin_fails(admin_client: Client) -> None:
    for changelist, queries in ODD_QUERIES.items():
        for query in queries:
            response: Any = admin_client.get(f"/admin/{changelist}/?{query}", follow=True)
            assert response.status_code in (200, 400), query[:40]


ODD_KEYS = ("abc", "\0", "9" * 23)
ACTIONS = [
    ("books/book", "mark_lent", ODD_KEYS[:1]),
    ("books/book", "mark_available", ODD_KEYS[1:2]),
    ("books/book", "delete_books", ODD_KEYS),
    ("auth/user", "delete_selected", ODD_KEYS),
    ("auth/group", "delete_selected", ODD_KEYS[:1]),
]


def test_a_selection_of_nothing_changes_nothing(admin_client: Client) -> None:
    for changelist, action, keys in ACTIONS:
        for key in keys:
            # The messages of the request before.
            admin_client.cookies.pop("messages", None)
            form = {"action": action, "_selected_action": key}
            response: Any = admin_client.post(f"/admin/{changelist}/", form)
            messages = [str(message) for message in get_messages(response.wsgi_request)]
            assert messages == ["What was selected is no longer there."], (action, key[:30])


def test_nobody_is_given_what_does_not_exist(admin_client: Client, admin_user: User) -> None:
    pages = (("add/", {"groups"}), (f"{admin_user.pk}/change/", {"groups", "user_permissions"}))
    for number, key in enumerate((*ODD_KEYS, "-" + "9" * 23)):
        page, fields = pages[number % 2]
        form = {"username": "jane", "email": "jane@library.example", "groups": key, "user_permissions": key}
        response: Any = admin_client.post(f"/admin/auth/user/{page}", form)
        assert response.context["adminform"].form.errors.keys() == fields, key[:30]
    assert list(User.objects.all()) == [admin_user]

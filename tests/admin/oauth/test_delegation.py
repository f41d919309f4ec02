"""Who may change users gives nobody rights that they have not themselves, and takes no account that has more."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from tests.support.admin_pages import create_staff, read_text

USERS, GROUPS = "/admin/auth/user/", "/admin/auth/group/"


@pytest.fixture
def head(db: None) -> User:
    """A librarian who may do everything with users and groups, and is no superuser."""
    user = create_staff("head", "Librarians")
    user.user_permissions.set(Permission.objects.filter(content_type__model__in=["user", "group"]))
    return user


@pytest.fixture
def browser(client: Client, head: User) -> Client:
    client.force_login(head)
    return client


@pytest.fixture
def astrid(db: None) -> User:
    return User.objects.create_user("astrid", is_staff=True)


def change_user(browser: Client, user: User, **changes: Any) -> Any:
    form = {"username": user.username, "is_staff": "on", "is_active": "on", "date_joined_0": "2026-01-01"}
    return browser.post(f"{USERS}{user.pk}/change/", {**form, "date_joined_1": "00:00", **changes})


def find_permission(codename: str) -> int:
    return Permission.objects.get(codename=codename).pk


def list_codenames(permissions: Any) -> list[str]:
    return [*permissions.values_list("codename", flat=True)]


def test_nobody_makes_a_superuser_of_themselves(browser: Client, head: User) -> None:
    change_user(browser, head, is_superuser="on", first_name="Ada")
    head.refresh_from_db()
    assert (head.first_name, head.is_superuser) == ("Ada", False)


def test_rights_that_the_librarian_has_are_given(browser: Client, astrid: User) -> None:
    librarians = Group.objects.get(name="Librarians")
    change_user(browser, astrid, groups=librarians.pk, user_permissions=find_permission("add_user"))
    assert list(astrid.groups.all()) == [librarians]
    assert list_codenames(astrid.user_permissions) == ["add_user"]


def test_other_permissions_and_groups_with_them_are_not_given(browser: Client, astrid: User) -> None:
    for rights in (
        {"user_permissions": find_permission("add_apikey")},
        {"groups": Group.objects.get(name="Developers").pk},
    ):
        assert "is not one of the available choices" in read_text(change_user(browser, astrid, **rights))
    assert not astrid.user_permissions.exists()
    assert not astrid.groups.exists()


def test_nobody_is_invited_to_do_more(browser: Client) -> None:
    form = {"username": "jane", "email": "jane@library.example", "groups": Group.objects.get(name="Developers").pk}
    response = browser.post(f"{USERS}add/", form)
    assert "is not one of the available choices" in read_text(response)
    assert "<strong>Librarians</strong>" in read_text(response)
    assert not User.objects.filter(username="jane").exists()


def test_accounts_with_more_rights_are_not_taken(browser: Client, astrid: User) -> None:
    """Whoever chooses the mail address of an account can have a password mailed."""
    page, password = f"{USERS}{astrid.pk}", "correct horse battery"
    developers = Group.objects.get(name="Developers")
    astrid.groups.add(developers)
    responses = [
        browser.post(f"{page}/password/", {"password1": password, "password2": password}),
        browser.post(f"{page}/delete/", {"post": "yes"}),
        change_user(browser, astrid, email="head@library.example"),
    ]
    browser.post(USERS, {"action": "delete_selected", "_selected_action": astrid.pk, "post": "yes"})
    astrid.groups.remove(developers)
    astrid.user_permissions.add(find_permission("add_apikey"))
    responses.append(change_user(browser, astrid, email="head@library.example"))
    astrid.user_permissions.clear()
    User.objects.filter(pk=astrid.pk).update(is_superuser=True, is_active=False)
    responses.append(change_user(browser, astrid, email="head@library.example"))
    assert [response.status_code for response in responses] == [403] * 5
    stored = User.objects.get(pk=astrid.pk)
    assert (stored.email, stored.password) == ("", astrid.password)
    assert browser.get(f"{page}/change/").status_code == 200


def test_groups_get_no_other_permissions(browser: Client, head: User) -> None:
    group = Group.objects.create(name="Helpers")
    head.groups.add(group)
    response = browser.post(
        f"{GROUPS}{group.pk}/change/", {"name": "Helpers", "permissions": find_permission("add_apikey")}
    )
    assert "is not one of the available choices" in read_text(response)
    browser.post(f"{GROUPS}{group.pk}/change/", {"name": "Helpers", "permissions": find_permission("add_book")})
    assert list_codenames(group.permissions) == ["add_book"]


def test_a_sentence_is_granted_and_taken_away_with_all_its_permissions(root: Client) -> None:
    group = Group.objects.get(name="Developers")
    page, form = f"{GROUPS}{group.pk}/change/", {"name": "Developers"}
    actions = [f"{action}_apikey" for action in ("add", "change", "view")]
    sentence = ",".join(sorted(str(find_permission(name)) for name in actions))
    # A permission that no checked sentence contains is shown on its own, and is kept.
    root.post(page, {**form, "permissions": [sentence, find_permission("view_book"), find_permission("view_endpoint")]})
    assert {*list_codenames(group.permissions)} == {*actions, "view_book", "view_endpoint"}
    values = read_text(root.get(page)).partition("Single permissions")[2]
    assert re.findall(r'value="([0-9]+)" checked', values) == [str(find_permission("view_endpoint"))]
    root.post(page, {**form, "permissions": [find_permission("view_endpoint")]})
    assert list_codenames(group.permissions) == ["view_endpoint"]


def test_groups_with_other_permissions_are_not_changed(browser: Client) -> None:
    group = Group.objects.get(name="Developers")
    responses = [
        browser.post(f"{GROUPS}{group.pk}/change/", {"name": "Nobody"}),
        browser.post(f"{GROUPS}{group.pk}/delete/", {"post": "yes"}),
    ]
    assert [response.status_code for response in responses] == [403, 403]
    browser.post(GROUPS, {"action": "delete_selected", "_selected_action": group.pk, "post": "yes"})
    assert Group.objects.filter(name="Developers").exists()


def test_a_superuser_gives_everything(root: Client, astrid: User) -> None:
    change_user(root, astrid, is_superuser="on", user_permissions=find_permission("add_apikey"))
    astrid.refresh_from_db()
    assert astrid.is_superuser
    assert list_codenames(astrid.user_permissions) == ["add_apikey"]

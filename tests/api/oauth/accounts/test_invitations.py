"""Who runs the library invites people on one page of the admin, which says what each role may do."""

import re
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.core import mail
from django.test import Client
from django.utils import timezone

from oauth.accounts import mails
from oauth.models import AccountMail
from tests.support.admin_pages import read_text, submit_action

USERS = "/admin/auth/user/"


def invite(browser: Client, *roles: str, **changes: str) -> Any:
    groups = list(Group.objects.filter(name__in=roles).values_list("pk", flat=True))
    form = {
        "username": "jane",
        "email": "jane@library.example",
        "first_name": "Jane",
        "last_name": "",
        "groups": groups,
    }
    return browser.post(f"{USERS}add/", {**form, **changes}, follow=True)


def read_lines(text: str, role: str) -> list[str]:
    """Returns what the role may do, as the page says it."""
    return re.findall(r"<span>(.*?)</span>", text.partition(f"<strong>{role}</strong>")[2].partition("</label>")[0])


def test_the_page_says_what_a_role_may_do(root: Client) -> None:
    text = read_text(root.get(f"{USERS}add/"))
    assert "Invite a person" in text
    assert read_lines(text, "Librarians") == [
        "Find and read books",
        "Add books",
        "Change books, and mark them as lent or available",
        "Delete books",
        "See who changed which book",
    ]
    assert read_lines(text, "Developers")[:2] == ["Register apps, change and delete them", "Make and revoke API keys"]
    assert "Can " not in text


def test_a_role_with_other_permissions_says_them(root: Client) -> None:
    group = Group.objects.create(name="Helpers")
    group.permissions.set(Permission.objects.filter(codename__in=["view_book", "view_session"]))
    assert read_lines(read_text(root.get(f"{USERS}add/")), "Helpers") == ["Find and read books", "Can view session"]


def test_a_librarian_is_invited(root: Client) -> None:
    assert "An invitation goes to jane@library.example." in read_text(invite(root, "Librarians"))
    user = User.objects.get(username="jane")
    assert (user.is_staff, user.is_superuser, user.has_usable_password()) == (True, False, False)
    assert user.has_perm("books.change_book")
    assert mails.send_due(timezone.now()) == 1
    assert mail.outbox[-1].to == ["jane@library.example"]


def test_only_a_person_with_a_role_is_staff_and_only_a_superuser_invites_a_superuser(
    root: Client, client: Client
) -> None:
    invite(root)
    invite(root, username="emma", email="emma@library.example", is_superuser="on")
    head = User.objects.create_user("head", is_staff=True)
    head.user_permissions.set(Permission.objects.filter(codename__in=["add_user", "change_user", "view_user"]))
    client.force_login(head)
    invite(client, username="anne", email="anne@library.example", is_superuser="on")
    rights = {user.username: (user.is_staff, user.is_superuser) for user in User.objects.all()}
    assert [rights[name] for name in ("jane", "emma", "anne")] == [(False, False), (True, True), (False, False)]


def test_an_invalid_invitation_is_explained(root: Client) -> None:
    User.objects.update(email="root@library.example")
    emails, names = ("", "jane", "ROOT@library.example"), ("root", "a\0b")
    for field, value in (*(("email", email) for email in emails), *(("username", name) for name in names)):
        response = invite(root, "Librarians", **{field: value})
        assert list(response.context["adminform"].form.errors) == [field], value
    assert not AccountMail.objects.exists()


def test_people_are_invited_again_until_they_have_a_password(root: Client) -> None:
    invite(root, "Librarians")
    AccountMail.objects.all().delete()
    page = read_text(submit_action(root, USERS, "invite_again", *User.objects.all()))
    assert "The person is invited." in page
    assert AccountMail.objects.get().user == User.objects.get(username="jane")
    User.objects.get(username="jane").set_password("x")
    assert "1 not invited" in page


def test_the_list_says_how_people_sign_in(root: Client) -> None:
    invite(root, "Librarians")
    User.objects.create_user("emma", password="hartfield")
    text = read_text(root.get(USERS))
    assert "nothing yet" in text
    assert '<td class="field-sign_in">password</td>' in text

"""People see and change their own account."""

import httpx
import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import Group, User

from tests.support.account_pages import PASSWORD, read_text, submit
from tests.support.oauth_flows import sign_in

PAGE = "/accounts/profile"


@pytest.fixture(autouse=True)
def librarian_who_is_signed_in(api: httpx.Client, jane: User) -> None:
    jane.is_staff = True
    jane.save()
    jane.groups.add(Group.objects.get(name="Librarians"))
    sign_in(api, jane)


def save(client: httpx.Client, **form: str) -> httpx.Response:
    values = {"first_name": "", "last_name": "", "email": "jane@library.example", "password": ""}
    return submit(client, PAGE, **{**values, **form})


def test_what_a_person_may_do_is_said_in_words(api: httpx.Client, jane: User) -> None:
    text = read_text(api.get(PAGE))
    assert (
        "In the library you may: Find and read books Add books Change books, and mark them as lent or available Delete"
        " books See who changed which book" in text
    )
    User.objects.update(is_staff=False)
    assert "In the library you may: Read the library's books, and let apps read them" in read_text(api.get(PAGE))


def test_a_person_changes_the_name_and_nothing_else(api: httpx.Client, jane: User) -> None:
    others = {"is_superuser": "on", "username": "root", "is_staff": ""}
    assert save(api, first_name="Jane", last_name="Austen", **others).headers["Location"] == PAGE
    assert "Your profile is saved." in read_text(api.get(PAGE))
    jane.refresh_from_db()
    assert jane.get_full_name() == "Jane Austen"
    assert (jane.username, jane.is_superuser, jane.is_staff) == ("jane", False, True)


def test_a_new_address_needs_the_password(api: httpx.Client, jane: User) -> None:
    assert "Enter your password to change the email address." in read_text(save(api, email="new@library.example"))
    assert "This is not your password." in read_text(save(api, email="new@library.example", password="guess"))
    jane.refresh_from_db()
    assert jane.email == "jane@library.example"
    save(api, email="new@library.example", password=PASSWORD)
    jane.refresh_from_db()
    assert jane.email == "new@library.example"


def test_a_stolen_session_cannot_guess_the_password(api: httpx.Client, jane: User) -> None:
    assert save(api, email="x@library.example", password="guess").status_code == 200
    AccessAttempt.objects.update(failures_since_start=5)
    for email in ("x@library.example", "jane@library.example"):
        assert save(api, email=email, password=PASSWORD).status_code == 429


def test_an_invalid_profile_is_explained(api: httpx.Client, jane: User) -> None:
    for form in ({"email": "no address"}, {"first_name": "a\0b"}, {"last_name": "n" * 151}):
        page = save(api, **form)
        assert (page.status_code, 'class="errorlist"' in page.text) == (200, True), form
        assert "<bdi>jane</bdi>" in page.text

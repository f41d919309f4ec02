"""People see and change their own account. They get a mail when their password, address or second factor changes."""

from collections.abc import Callable

import httpx
import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.core import mail
from django.utils import timezone

from library_site.admin.moments import write_moment
from oauth.accounts import mails, totp
from oauth.models import AccountMail
from tests.support.account_pages import PASSWORD, read_text
from tests.support.oauth_flows import join_groups, post_form, sign_in
from tests.support.second_factors import set_up_phone

PAGE = "/accounts/profile"
OLD, NEW = "jane@library.example", "new@library.example"


@pytest.fixture(autouse=True)
def librarian_who_is_signed_in(api: httpx.Client, jane: User) -> None:
    jane.is_staff = True
    jane.save()
    join_groups(jane, "Librarians")
    sign_in(api, jane)


def save(client: httpx.Client, **form: str) -> httpx.Response:
    values = {"first_name": "", "last_name": "", "email": OLD, "password": ""}
    return post_form(client, PAGE, {**values, **form})


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
    assert "Enter your password to change the email address." in read_text(save(api, email=NEW))
    assert "This is not your password." in read_text(save(api, email=NEW, password="guess"))
    jane.refresh_from_db()
    assert jane.email == OLD
    save(api, email=NEW, password=PASSWORD)
    jane.refresh_from_db()
    assert jane.email == NEW


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


def list_mails() -> list[tuple[list[str], str]]:
    """Does what the worker does. Returns the addressees and the subjects."""
    mails.send_due(timezone.now())
    return [(message.to, str(message.subject)) for message in mail.outbox]


def test_a_new_password_is_announced(api: httpx.Client, jane: User) -> None:
    passwords = {"new_password1": "northanger-abbey", "new_password2": "northanger-abbey"}
    post_form(api, "/accounts/password", {"old_password": PASSWORD, **passwords})
    assert list_mails() == [([OLD], "Your password for the library was changed")]
    [message] = mail.outbox
    assert "The password of your account jane at http://" in message.body
    assert f" was changed on {write_moment(AccountMail.objects.get().created_at)}." in message.body
    assert "choose a new password here:\n\nhttp://127.0.0.1:8000/accounts/password/forgotten\n" in message.body


def test_a_new_address_is_announced_to_the_old_one(api: httpx.Client, jane: User) -> None:
    save(api, email=NEW, password=PASSWORD)
    assert list_mails() == [([OLD], "Your email address at the library was changed")]


def test_a_second_factor_is_announced_when_it_is_turned_on_and_off(jane: User) -> None:
    set_up_phone(jane)
    assert list_mails() == [([OLD], "Two-factor sign-in at the library was turned on")]
    mail.outbox.clear()
    totp.turn_off(jane)
    assert list_mails() == [([OLD], "Two-factor sign-in at the library was turned off")]


def test_who_is_not_active_gets_no_notice(jane: User) -> None:
    set_up_phone(jane)
    User.objects.update(is_active=False)
    assert list_mails() == []


def change_the_name(user: User) -> None:
    user.first_name = "Jane"
    user.save()


def save_a_better_hash(user: User) -> None:
    # Django does this at a sign-in when the hasher has changed.
    user.password = f"other${user.password}"
    user.save(update_fields=["password"])


def choose_the_first_password(user: User) -> None:
    User.objects.update(password="!")
    user.set_password("northanger-abbey")
    user.save()


def change_without_an_address(user: User) -> None:
    User.objects.update(email="")
    user.set_password("northanger-abbey")
    user.save()


@pytest.mark.parametrize(
    "change",
    [change_the_name, save_a_better_hash, choose_the_first_password, totp.turn_off, change_without_an_address],
)
def test_nothing_else_is_announced(jane: User, change: Callable[[User], None]) -> None:
    change(jane)
    assert not AccountMail.objects.exists()

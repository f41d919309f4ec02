"""People get a mail when their password, their mail address or their second factor was changed."""

from collections.abc import Callable

import httpx
import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.utils import timezone

from library_site.admin.moments import write_moment
from oauth.accounts import mails, totp
from oauth.models import AccountMail
from tests.support.account_pages import PASSWORD, submit
from tests.support.oauth_flows import sign_in
from tests.support.second_factors import set_up_phone

OLD, NEW = "jane@library.example", "new@library.example"


@pytest.fixture(autouse=True)
def signed_in(api: httpx.Client, jane: User) -> None:
    sign_in(api, jane)


def list_mails() -> list[tuple[list[str], str]]:
    """Does what the worker does. Returns the addressees and the subjects."""
    mails.send_due(timezone.now())
    return [(message.to, str(message.subject)) for message in mail.outbox]


def test_a_new_password_is_announced(api: httpx.Client, jane: User) -> None:
    passwords = {"new_password1": "northanger-abbey", "new_password2": "northanger-abbey"}
    submit(api, "/accounts/password", old_password=PASSWORD, **passwords)
    assert list_mails() == [([OLD], "Your password for the library was changed")]
    [message] = mail.outbox
    assert "The password of your account jane at http://" in message.body
    assert f" was changed on {write_moment(AccountMail.objects.get().created_at)}." in message.body
    assert "choose a new password here:\n\nhttp://127.0.0.1:8000/accounts/password/forgotten\n" in message.body


def test_a_new_address_is_announced_to_the_old_one(api: httpx.Client, jane: User) -> None:
    submit(api, "/accounts/profile", first_name="", last_name="", email=NEW, password=PASSWORD)
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

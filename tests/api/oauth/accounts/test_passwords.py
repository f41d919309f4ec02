"""People choose passwords: by a link of a mail when they forgot theirs or are invited, and when they are signed in."""

import logging
import re
from datetime import timedelta
from smtplib import SMTPServerDisconnected
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.core import mail
from django.core.mail import EmailMessage
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from library_site.jobs.expiry import delete_by_kind
from oauth import expiry
from oauth.accounts import mails
from oauth.accounts.forms import NewPasswordForm
from oauth.accounts.mails import invitation_tokens
from oauth.models import AccountMail, Profile
from tests.support.account_pages import PASSWORD, dump_sessions, read_text
from tests.support.oauth_flows import create_key_header, post_form, sign_in, submit_sign_in
from tests.support.second_factors import set_up_phone

ADDRESS, NEW_PASSWORD = "jane@library.example", "northanger-abbey"
REQUEST_PAGE, CHANGE_PAGE = "/accounts/password/forgotten", "/accounts/password"
SENT_PAGE, SET_PAGE = "/accounts/password/sent", "/accounts/password/set"


def request_reset(client: httpx.Client, address: str = ADDRESS) -> httpx.Response:
    return post_form(client, REQUEST_PAGE, {"email": address})


def send_mails() -> list[EmailMessage]:
    """Does what the worker does, and returns the mails."""
    mail.outbox.clear()
    mails.send_due(timezone.now())
    return list(mail.outbox)


def read_link(message: EmailMessage) -> str:
    match = re.search(r"^(http\S+\?\S+)$", str(message.body), re.MULTILINE)
    assert match
    return match[1]


def get_path(message: EmailMessage) -> str:
    """Returns the link of a mail without the origin."""
    parts = urlsplit(read_link(message))
    return f"{parts.path}?{parts.query}"


def get_link(client: httpx.Client) -> str:
    """Asks for a mail and returns its link without the origin."""
    send_mails()
    request_reset(client)
    [message] = send_mails()
    return get_path(message)


def choose_password(client: httpx.Client, link: str, password: str = NEW_PASSWORD, **form: str) -> httpx.Response:
    page = client.get(link)
    if page.status_code != 302:
        return page
    passwords = {"new_password1": password, "new_password2": password}
    return post_form(client, page.headers["Location"], {**passwords, **form})


def is_password(user: User, password: str) -> bool:
    return User.objects.get(pk=user.pk).check_password(password)


# Asking for a mail


def test_a_person_who_forgot_the_password_chooses_another(api: httpx.Client, jane: User) -> None:
    assert request_reset(api).headers["Location"] == SENT_PAGE
    [message] = send_mails()
    assert (message.to, message.subject) == ([ADDRESS], "A new password for the library")
    assert "Somebody asked for a new password for your account jane at http://" in message.body
    assert "The link is good for 60 minutes." in message.body
    assert choose_password(api, get_path(message)).headers["Location"] == SET_PAGE
    assert is_password(jane, NEW_PASSWORD)
    assert submit_sign_in(api, "jane", NEW_PASSWORD).status_code == 302


def test_the_mail_is_in_the_language_of_the_person_or_of_the_page(api: httpx.Client, jane: User) -> None:
    form = {"email": ADDRESS, "csrfmiddlewaretoken": api.get(REQUEST_PAGE).cookies["csrftoken"]}
    api.post(REQUEST_PAGE, data=form, headers={"Accept-Language": "de"})
    [message] = send_mails()
    assert message.subject == "Ein neues Passwort für die Bibliothek"
    assert "Der Link gilt 60 Minuten." in str(message.body)
    Profile.objects.create(user=jane, language="en")
    api.post(REQUEST_PAGE, data=form, headers={"Accept-Language": "de"})
    [message] = send_mails()
    assert message.subject == "A new password for the library"


def test_the_response_does_not_tell_who_has_an_account(api: httpx.Client, jane: User) -> None:
    responses = []
    for address in (ADDRESS, "nobody@library.example", "JANE@LIBRARY.EXAMPLE"):
        api.cookies.clear()
        form = {"email": address, "csrfmiddlewaretoken": api.get(REQUEST_PAGE).cookies["csrftoken"]}
        with CaptureQueriesContext(connection) as queries:
            response = api.post(REQUEST_PAGE, data=form)
        responses.append((response.headers["Location"], len(queries), read_text(api.get(SENT_PAGE))))
    assert responses == [responses[0]] * 3
    assert [message.to for message in send_mails()] == [[ADDRESS], [ADDRESS]]


def test_each_account_of_an_address_gets_a_mail_that_names_it(api: httpx.Client, jane: User) -> None:
    User.objects.create_user("austen", ADDRESS, PASSWORD)
    request_reset(api)
    texts = " ".join(str(message.body) for message in send_mails())
    assert sorted(re.findall(r"your account (\w+)", texts)) == ["austen", "jane"]


def test_only_active_people_with_a_password_get_a_mail(api: httpx.Client, jane: User) -> None:
    User.objects.create_user("invited", "invited@library.example")
    User.objects.create_user("left", "left@library.example", PASSWORD, is_active=False)
    for address in ("invited@library.example", "left@library.example"):
        request_reset(api, address)
    assert send_mails() == []
    for address in ("", "jane", "a\0b@x.example", f"{'a' * 300}@x.example"):
        page = request_reset(api, address)
        assert (page.status_code, 'class="errorlist"' in page.text) == (200, True)
    assert AccountMail.objects.filter(user=None).count() == AccountMail.objects.count()


def test_a_mailbox_gets_three_mails_an_hour(api: httpx.Client, jane: User) -> None:
    assert {request_reset(api).headers["Location"] for _ in range(4)} == {SENT_PAGE}
    assert len(send_mails()) == 3
    AccountMail.objects.update(created_at=timezone.now() - timedelta(hours=1, seconds=1))
    request_reset(api)
    assert len(send_mails()) == 1


def test_a_network_asks_for_twenty_mails_an_hour(api: httpx.Client, jane: User) -> None:
    now = timezone.now()
    for number in range(mails.MAX_MAILS_PER_NETWORK):
        mails.request_reset(f"{number}@library.example", "127.0.0.1", now)
    page = request_reset(api)
    assert (page.status_code, page.headers["Retry-After"]) == (429, "3600")
    assert "Try again in an hour" in read_text(page)
    assert send_mails() == []
    mails.request_reset(ADDRESS, "192.0.2.7", now)
    assert [message.to for message in send_mails()] == [[ADDRESS]]


def test_the_link_leads_to_the_library_whatever_host_was_asked(
    api: httpx.Client, jane: User, settings: Settings
) -> None:
    settings.PUBLIC_URL, settings.ALLOWED_HOSTS = "https://library.example", ["*"]
    form = {"email": ADDRESS, "csrfmiddlewaretoken": api.get(REQUEST_PAGE).cookies["csrftoken"]}
    api.post(REQUEST_PAGE, data=form, headers={"Host": "evil.example"})
    [message] = send_mails()
    assert read_link(message).startswith("https://library.example/accounts/password/new?")
    assert "evil" not in message.body


# Following a link


def test_a_link_is_good_once_for_an_hour_and_for_an_active_person(
    api: httpx.Client, jane: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_no_longer_good(page: httpx.Response) -> bool:
        return page.status_code == 200 and "This link is no longer good" in read_text(page)

    link = get_link(api)
    choose_password(api, link)
    assert is_no_longer_good(choose_password(api, link, "another-one-of-hers"))
    assert is_password(jane, NEW_PASSWORD)
    now = default_token_generator._now()
    with monkeypatch.context() as patch:
        patch.setattr(default_token_generator, "_now", lambda: now - timedelta(hours=1, seconds=1))
        link = get_link(api)
    assert is_no_longer_good(api.get(link))
    for query in ("?uid=&token=", "?uid=MQ&token=x-y", "?uid=%00&token=%00", f"?uid={'9' * 999}&token=a-b", ""):
        assert is_no_longer_good(api.get(f"/accounts/password/new{query}")), query
    link = get_link(api)
    User.objects.update(is_active=False)
    assert is_no_longer_good(api.get(link))


def test_the_token_is_in_no_log_and_no_address_of_the_page(
    api: httpx.Client, jane: User, caplog: pytest.LogCaptureFixture
) -> None:
    link = get_link(api)
    caplog.clear()
    [token] = parse_qs(urlsplit(link).query)["token"]
    with caplog.at_level(logging.DEBUG, logger="library_site"):
        page = api.get(link)
        choose_password(api, link)
    assert page.headers["Location"] == "/accounts/password/new"
    lines = [record.getMessage() for record in caplog.records if record.name == "library_site.access"]
    assert lines[0].split(" ")[:3] == ["GET", "/accounts/password/new", "302"]
    assert token not in str(lines)


def test_a_bad_password_is_explained(api: httpx.Client, jane: User) -> None:
    link = get_link(api)
    page = api.get(api.get(link).headers["Location"])
    # Who has no keys is not asked about them.
    assert "API keys" not in read_text(page)
    assert "This password is too short." in read_text(choose_password(api, link, "12345"))
    assert is_password(jane, PASSWORD)


def test_a_new_password_ends_sessions_and_the_lockout(api: httpx.Client, jane: User) -> None:
    submit_sign_in(api, "jane", "guess")
    AccessAttempt.objects.update(failures_since_start=5)
    sign_in(api, jane)
    assert api.get("/accounts/apps").status_code == 200
    choose_password(api, get_link(api))
    assert api.get("/accounts/apps").status_code == 302
    assert submit_sign_in(api, "jane", NEW_PASSWORD).headers["Location"] == "/accounts/apps"


def test_a_new_password_does_not_replace_the_code(api: httpx.Client, jane: User) -> None:
    set_up_phone(jane)
    choose_password(api, get_link(api))
    assert api.get("/accounts/apps").status_code == 302
    assert submit_sign_in(api, "jane", NEW_PASSWORD).headers["Location"] == "/accounts/login/code"


def test_api_keys_are_revoked_if_the_person_says_so(api: httpx.Client, jane: User) -> None:
    header, header_of_another = create_key_header(jane), create_key_header(User.objects.create_user("cassandra"))
    choose_password(api, get_link(api))
    assert api.get("/api/v2/api-keys", headers=header).status_code == 200
    choose_password(api, get_link(api), revoke_keys="on")
    assert api.get("/api/v2/api-keys", headers=header).status_code == 401
    assert api.get("/api/v2/api-keys", headers=header_of_another).status_code == 200


# Invitations


@pytest.fixture
def newcomer(db: None) -> User:
    user = User.objects.create_user("newcomer", ADDRESS, is_staff=True)
    mails.invite(user, timezone.now())
    return user


def get_invitation() -> str:
    [message] = send_mails()
    assert message.subject == "Your account at the library"
    return get_path(message)


def test_an_invited_person_chooses_a_password_and_signs_in(api: httpx.Client, newcomer: User) -> None:
    page = api.get(api.get(get_invitation()).headers["Location"])
    assert "Your username is newcomer." in read_text(page)
    mails.invite(newcomer, timezone.now())
    choose_password(api, get_invitation())
    assert submit_sign_in(api, "newcomer", NEW_PASSWORD).headers["Location"] == "/admin/"


def test_who_is_deactivated_meanwhile_gets_no_invitation(newcomer: User) -> None:
    User.objects.update(is_active=False)
    assert send_mails() == []


def test_an_invitation_is_good_once_and_for_a_week_and_survives_a_new_secret_key(
    newcomer: User, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    token = invitation_tokens.make_token(newcomer)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "new", [settings.SECRET_KEY]
    assert invitation_tokens.check_token(newcomer, token)
    assert not invitation_tokens.check_token(newcomer, default_token_generator.make_token(newcomer))
    now = timezone.now().timestamp()
    with monkeypatch.context() as patch:
        patch.setattr("django.core.signing.time.time", lambda: now + 7 * 24 * 3600 + 2)
        assert not invitation_tokens.check_token(newcomer, token)
    newcomer.set_password(NEW_PASSWORD)
    newcomer.save()
    assert not invitation_tokens.check_token(newcomer, token)


def test_the_link_of_an_invitation_changes_no_password(api: httpx.Client, newcomer: User) -> None:
    link = get_invitation().replace("/accounts/invitation", "/accounts/password/new")
    assert "This link is no longer good" in read_text(api.get(link))


# Sending


def test_a_mail_that_fails_is_tried_again_and_given_up_in_the_end(jane: User, monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    mails.request_reset(ADDRESS, "127.0.0.1", now)
    with monkeypatch.context() as patch:
        patch.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", fail)
        assert mails.send_due(now) == 0
        assert mails.send_due(now) == 0
    assert mails.send_due(now + timedelta(minutes=1)) == 1
    assert mails.send_due(now + timedelta(hours=9)) == 0
    mails.request_reset(ADDRESS, "127.0.0.1", now)
    monkeypatch.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", fail)
    for hours in range(1, 10):
        mails.send_due(now + timedelta(hours=2 * hours))
    assert AccountMail.objects.filter(sent_at=None).values_list("attempts", "due_at").get() == (5, None)
    assert len(mail.outbox) == 1


def fail(*arguments: Any) -> int:
    raise SMTPServerDisconnected


def test_two_workers_send_one_mail_and_its_request_is_cleared_after_a_day(jane: User) -> None:
    now = timezone.now()
    mails.request_reset(ADDRESS, "127.0.0.1", now)
    row = AccountMail.objects.get()
    assert [mails.claim(row, now) for _ in range(2)] == [True, False]
    for later, count in ((timedelta(hours=23), 0), (timedelta(hours=24), 1)):
        assert delete_by_kind(expiry.iter_expired(now + later))["mails about passwords"] == count


# Changing it


def change_password(client: httpx.Client, old: str, new: str = NEW_PASSWORD) -> httpx.Response:
    return post_form(client, CHANGE_PAGE, {"old_password": old, "new_password1": new, "new_password2": new})


def test_a_person_changes_the_password_which_ends_the_other_sessions(api: httpx.Client, jane: User) -> None:
    sign_in(api, jane)
    other_session = api.cookies["sessionid"]
    api.cookies.clear()
    submit_sign_in(api, "jane", PASSWORD)
    assert "Your old password was entered incorrectly." in read_text(change_password(api, "guess"))
    assert change_password(api, PASSWORD).headers["Location"] == "/accounts/profile"
    assert "Your password is changed." in read_text(api.get("/accounts/profile"))
    assert is_password(jane, NEW_PASSWORD)
    api.cookies.clear()
    api.cookies.set("sessionid", other_session)
    assert api.get("/accounts/apps").status_code == 302


def test_the_admins_page_is_the_same(api: httpx.Client, jane: User) -> None:
    sign_in(api, jane)
    assert api.get("/admin/password_change/").headers["Location"] == CHANGE_PAGE
    assert PASSWORD not in dump_sessions()


def test_a_weak_password_is_refused_at_its_own_field(db: None) -> None:
    form = NewPasswordForm(User.objects.create_user("ada"), {"new_password1": "12345678", "new_password2": "12345678"})
    assert list(form.errors) == ["new_password1"]

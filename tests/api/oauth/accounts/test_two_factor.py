"""People sign in with a code of their phone after the password."""

import re
from datetime import timedelta
from functools import partial
from io import StringIO

import httpx
import pytest
import segno
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone
from pytest_django import Settings

from oauth.accounts import sessions, totp
from oauth.models import RecoveryCode, SecondFactor
from tests.support.account_pages import PASSWORD, dump_sessions, read_text, submit
from tests.support.concurrency import start_concurrently
from tests.support.oauth_flows import (
    build_authorization_request,
    create_confidential_app,
    create_key_header,
    create_reader,
    parse_redirect,
    post_form,
    read_hidden_fields,
    sign_in,
    submit_consent,
    submit_sign_in,
)
from tests.support.second_factors import Phone, compute_code, find_wrong_code, set_up_phone

CODE_PAGE, SETUP_PAGE, APPS_PAGE = "/accounts/login/code", "/accounts/two-factor", "/accounts/apps"


@pytest.fixture(autouse=True)
def fast_qr_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the first pattern of a QR code: to find the best of eight takes a tenth of a second."""
    monkeypatch.setattr("segno.make", partial(segno.make, mask=0))


@pytest.fixture
def margaret(db: None) -> User:
    return User.objects.create_user("margaret", password=PASSWORD, is_staff=True)


@pytest.fixture
def phone(margaret: User) -> Phone:
    return set_up_phone(margaret)


def enter_password(client: httpx.Client, page: str = "/accounts/login") -> httpx.Response:
    return submit_sign_in(client, "margaret", PASSWORD, page)


def enter_code(client: httpx.Client, code: str, page: str = CODE_PAGE) -> httpx.Response:
    return post_form(client, page, {"code": code})


def enter_recovery_code(client: httpx.Client, code: str) -> httpx.Response:
    return post_form(client, CODE_PAGE, {"code": "", "recovery_code": code})


def is_signed_in(client: httpx.Client) -> bool:
    return client.get(APPS_PAGE).status_code == 200


def read_setup_secret(page: httpx.Response) -> str:
    match = re.search(r"<code>([A-Z2-7 ]+)</code>", page.text)
    assert match
    return match[1].replace(" ", "")


def read_recovery_codes(page: httpx.Response) -> list[str]:
    return re.findall(r"<code>([a-z2-7-]+)</code>", page.text)


def submit_setup(client: httpx.Client, **form: str) -> httpx.Response:
    page = client.get(SETUP_PAGE)
    code = compute_code(read_setup_secret(page), timezone.now())
    return client.post(SETUP_PAGE, data={**read_hidden_fields(page.text), "code": code, **form})


# Signing in


def test_a_code_is_asked_for_after_the_password(api: httpx.Client, phone: Phone) -> None:
    response = enter_password(api, "/accounts/login?next=/admin/books/")
    assert (response.status_code, response.headers["Location"]) == (302, f"{CODE_PAGE}?next=/admin/books/")
    assert not is_signed_in(api)
    response = enter_code(api, phone.show_code(), response.headers["Location"])
    assert (response.status_code, response.headers["Location"]) == (302, "/admin/books/")
    assert is_signed_in(api)


def test_the_password_alone_opens_nothing(api: httpx.Client, phone: Phone) -> None:
    assert api.get(f"{CODE_PAGE}?next=/docs").headers["Location"] == "/accounts/login?next=/docs"
    enter_password(api)
    consent = api.get("/oauth/authorize", params=build_authorization_request(create_confidential_app()))
    pages = [consent, *(api.get(page) for page in (APPS_PAGE, SETUP_PAGE, "/admin/"))]
    assert [page.status_code for page in pages] == [302] * 4
    assert all("/login" in page.headers["Location"] for page in pages)
    # A code leads to no other site.
    response = enter_code(api, phone.show_code(), f"{CODE_PAGE}?next=https://evil.example/")
    assert response.headers["Location"] == "/admin/"


def test_the_clock_of_the_phone_may_be_a_step_off() -> None:
    secret, now = totp.generate_totp_secret(), timezone.now()
    found = [totp.find_step(secret, compute_code(secret, now, steps), now) is not None for steps in range(-2, 3)]
    assert found == [False, True, True, True, False]


def test_a_code_may_have_spaces_and_is_good_once(api: httpx.Client, phone: Phone) -> None:
    code = phone.show_code()
    for expected in (True, False):
        api.cookies.clear()
        enter_password(api)
        enter_code(api, f"{code[:3]} {code[3:]}")
        assert is_signed_in(api) is expected


def test_a_text_that_cannot_be_a_code_is_explained(api: httpx.Client, phone: Phone) -> None:
    enter_password(api)
    for code in ("", "1234567", "a\0b", "١٢٣٤٥٦"):
        page = enter_code(api, code)
        assert (page.status_code, 'class="errorlist"' in page.text, is_signed_in(api)) == (200, True, False), code


@pytest.mark.django_db(transaction=True)
def test_a_code_that_is_used_twice_at_the_same_time_is_good_once() -> None:
    user = User.objects.create_user("margaret")
    phone = set_up_phone(user)
    use_code = partial(totp.use_code, user, phone.show_code(), timezone.now())
    with transaction.atomic():
        assert use_code() == phone.factor
        second = start_concurrently(use_code)
    assert second.result() is None


def test_a_recovery_code_is_good_once_and_for_its_person_alone(api: httpx.Client, phone: Phone) -> None:
    for expected in (True, False):
        api.cookies.clear()
        enter_password(api)
        enter_recovery_code(api, phone.recovery_codes[3].upper())
        assert is_signed_in(api) is expected
    assert RecoveryCode.objects.count() == 9
    other = set_up_phone(User.objects.create_user("emma"))
    assert "none of your recovery codes" in read_text(enter_recovery_code(api, other.recovery_codes[0]))


def test_a_sign_in_waits_for_its_code_only_for_some_time_and_until_the_password_changes(
    api: httpx.Client, phone: Phone, margaret: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter_password(api)
    with monkeypatch.context() as patch:
        patch.setattr(sessions, "PENDING_SECONDS", 0)
        assert api.get(CODE_PAGE).headers["Location"] == "/accounts/login"
    enter_password(api)
    assert api.get(CODE_PAGE).status_code == 200
    margaret.set_password("northanger-abbey")
    margaret.save()
    assert api.get(CODE_PAGE).headers["Location"] == "/accounts/login"


def test_the_admin_has_no_page_that_signs_in_without_a_code(api: httpx.Client, phone: Phone) -> None:
    assert (
        enter_password(api, "/admin/login/?next=/admin/books/").headers["Location"] == f"{CODE_PAGE}?next=/admin/books/"
    )
    assert api.get("/admin/").status_code == 302


def test_an_app_gets_its_code_after_the_persons_code(api: httpx.Client, phone: Phone) -> None:
    parameters = build_authorization_request(create_confidential_app(), scope="read")
    sign_in_page = api.get("/oauth/authorize", params=parameters).headers["Location"]
    code_page = enter_password(api, sign_in_page).headers["Location"]
    page = api.get(code_page)
    assert "Bookshop asks to be let into the library." in read_text(page)
    assert "form-action 'self' https:" in page.headers["Content-Security-Policy"]
    assert enter_code(api, phone.show_code(), code_page).headers["Location"].startswith("/oauth/authorize?")
    assert "code" in parse_redirect(submit_consent(api, parameters))


# Guessing


def count_failures(failures: int) -> None:
    """As if so many codes or passwords had been wrong."""
    assert AccessAttempt.objects.update(failures_since_start=failures) == 1


def test_wrong_codes_lock_out_like_wrong_passwords(api: httpx.Client, phone: Phone) -> None:
    enter_password(api)
    wrong_code = find_wrong_code(phone)
    assert enter_code(api, wrong_code).status_code == 200
    count_failures(4)
    # The right password gives no further codes.
    enter_password(api)
    assert enter_code(api, wrong_code).status_code == 429
    response = enter_code(api, phone.show_code())
    assert (response.status_code, response.headers["Retry-After"]) == (429, "300")
    assert submit_sign_in(api, "margaret", PASSWORD).status_code == 429


def test_the_right_code_takes_the_failures_back(api: httpx.Client, phone: Phone) -> None:
    enter_password(api)
    SecondFactor.objects.update(wrong_codes=totp.MAX_WRONG_CODES - 2, first_wrong_at=timezone.now())
    enter_code(api, find_wrong_code(phone))
    assert AccessAttempt.objects.exists()
    assert enter_code(api, phone.show_code()).status_code == 302
    assert not AccessAttempt.objects.exists()
    assert SecondFactor.objects.get().wrong_codes == 0


def test_after_many_wrong_codes_from_anywhere_only_recovery_codes_are_good(
    api: httpx.Client, phone: Phone, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(totp.MAX_WRONG_CODES):
        totp.use_code(phone.factor.user, find_wrong_code(phone), timezone.now())
    assert "someone may know the password" in caplog.text
    enter_password(api)
    assert "Too many wrong codes were tried" in read_text(enter_code(api, phone.show_code()))
    enter_recovery_code(api, phone.recovery_codes[0])
    assert is_signed_in(api)


def test_wrong_codes_are_forgotten_after_an_hour(api: httpx.Client, phone: Phone) -> None:
    SecondFactor.objects.update(
        wrong_codes=totp.MAX_WRONG_CODES, first_wrong_at=timezone.now() - timedelta(hours=1, seconds=1)
    )
    enter_password(api)
    enter_code(api, phone.show_code())
    assert is_signed_in(api)


# Turning it on and off


def test_a_person_turns_two_factor_sign_in_on(api: httpx.Client, margaret: User) -> None:
    sign_in(api, margaret)
    page = submit_setup(api, password=PASSWORD)
    codes = read_recovery_codes(page)
    assert (len(codes), len({len(code) for code in codes})) == (10, 1)
    assert "no-store" in page.headers["Cache-Control"]
    assert is_signed_in(api)
    api.cookies.clear()
    enter_password(api)
    enter_recovery_code(api, codes[0])
    assert is_signed_in(api)


def test_the_secret_stays_the_same_until_it_is_set_up_and_nothing_readable_is_stored(
    api: httpx.Client, margaret: User
) -> None:
    sign_in(api, margaret)
    page = api.get(SETUP_PAGE)
    assert "data:image/svg+xml" in page.text
    secret = read_setup_secret(page)
    assert read_setup_secret(api.get(SETUP_PAGE)) == secret
    assert secret not in dump_sessions()
    codes = read_recovery_codes(submit_setup(api, password=PASSWORD))
    rows = str([list(SecondFactor.objects.values()), list(RecoveryCode.objects.values())])
    assert [text for text in (secret, *codes, *(code.replace("-", "") for code in codes)) if text in rows] == []


def test_two_factor_sign_in_is_turned_on_with_password_and_code_only(api: httpx.Client, margaret: User) -> None:
    sign_in(api, margaret)
    for form in ({"password": "wrong"}, {"password": ""}, {"password": PASSWORD, "code": "000"}):
        page = submit_setup(api, **form)
        assert (page.status_code, 'class="errorlist"' in page.text) == (200, True), form
    assert not SecondFactor.objects.exists()


def test_a_stolen_session_cannot_guess_the_password(api: httpx.Client, margaret: User) -> None:
    sign_in(api, margaret)
    assert submit_setup(api, password="guess").status_code == 200
    count_failures(5)
    assert submit_setup(api, password=PASSWORD).status_code == 429
    assert not SecondFactor.objects.exists()


def use_session(client: httpx.Client, key: str) -> None:
    client.cookies.clear()
    client.cookies.set("sessionid", key)


def test_the_other_sessions_end_when_two_factor_sign_in_is_turned_on_or_off(api: httpx.Client, margaret: User) -> None:
    other_sessions = []
    for user in (margaret, margaret, create_reader("someone else")):
        api.cookies.clear()
        sign_in(api, user)
        other_sessions.append(api.cookies["sessionid"])
    session_of_another = other_sessions.pop()
    api.cookies.clear()
    enter_password(api)
    submit_setup(api, password=PASSWORD)
    assert is_signed_in(api)
    session_with_factor = api.cookies["sessionid"]
    use_session(api, other_sessions[0])
    assert not is_signed_in(api)
    totp.turn_off(margaret)
    # The second was not used in between.
    for key in (session_with_factor, *other_sessions):
        use_session(api, key)
        assert not is_signed_in(api)
    use_session(api, session_of_another)
    assert is_signed_in(api)


def test_a_stolen_session_ends_when_two_factor_sign_in_is_turned_on_or_off(api: httpx.Client, margaret: User) -> None:
    """A thief who knows the key of the very session that goes on is not let in with it."""
    enter_password(api)
    keys = [api.cookies["sessionid"]]
    codes = read_recovery_codes(submit_setup(api, password=PASSWORD))
    keys.append(api.cookies["sessionid"])
    submit(api, SETUP_PAGE, code="", recovery_code=codes[0], turn_off="")
    assert is_signed_in(api)
    assert len({*keys, api.cookies["sessionid"]}) == 3
    for key in keys:
        use_session(api, key)
        assert not is_signed_in(api)


def test_a_person_turns_two_factor_sign_in_off_with_a_code(api: httpx.Client, phone: Phone) -> None:
    enter_password(api)
    enter_recovery_code(api, phone.recovery_codes[0])
    assert "This code is not right" in read_text(submit(api, SETUP_PAGE, code=find_wrong_code(phone), turn_off=""))
    assert submit(api, SETUP_PAGE, code=phone.show_code(), turn_off="").status_code == 302
    assert "Two-factor sign-in is turned off." in read_text(api.get("/accounts/profile"))
    assert not SecondFactor.objects.exists()
    assert is_signed_in(api)


def test_new_recovery_codes_replace_the_old_ones(api: httpx.Client, phone: Phone) -> None:
    enter_password(api)
    enter_recovery_code(api, phone.recovery_codes[0])
    codes = read_recovery_codes(submit(api, SETUP_PAGE, code=phone.show_code(), renew=""))
    api.cookies.clear()
    enter_password(api)
    assert "none of your recovery codes" in read_text(enter_recovery_code(api, phone.recovery_codes[1]))
    assert enter_recovery_code(api, codes[1]).status_code == 302


def test_guesses_in_a_stolen_session_are_counted(api: httpx.Client, phone: Phone) -> None:
    enter_password(api)
    enter_recovery_code(api, phone.recovery_codes[0])
    assert submit(api, SETUP_PAGE, code=find_wrong_code(phone), turn_off="").status_code == 200
    count_failures(5)
    assert submit(api, SETUP_PAGE, code=phone.show_code(), turn_off="").status_code == 429


# Demanded of staff


def test_staff_must_set_two_factor_sign_in_up_before_they_are_signed_in(
    api: httpx.Client, margaret: User, settings: Settings
) -> None:
    settings.TWO_FACTOR_FOR_STAFF = True
    response = enter_password(api, "/accounts/login?next=/admin/")
    assert response.headers["Location"] == f"{SETUP_PAGE}?next=/admin/"
    assert not is_signed_in(api)
    page = submit_setup(api)
    assert len(read_recovery_codes(page)) == 10
    assert is_signed_in(api)


@pytest.mark.parametrize("is_staff", [True, False])
def test_nothing_of_an_unfinished_sign_in_is_left_to_the_next_person(
    api: httpx.Client, margaret: User, settings: Settings, is_staff: bool
) -> None:
    """Otherwise margaret could know the secret that the phone of the next person at this computer shows codes of."""
    settings.TWO_FACTOR_FOR_STAFF = True
    enter_password(api)
    secret = read_setup_secret(api.get(SETUP_PAGE))
    User.objects.create_user("emily", password=PASSWORD, is_staff=is_staff)
    submit_sign_in(api, "emily", PASSWORD)
    # Only staff must set it up.
    assert is_signed_in(api) is not is_staff
    page = api.get(SETUP_PAGE)
    assert "emily" in page.text
    assert read_setup_secret(page) != secret


def test_older_sessions_of_staff_end_and_keys_need_no_code(
    api: httpx.Client, margaret: User, settings: Settings
) -> None:
    sign_in(api, margaret)
    assert is_signed_in(api)
    settings.TWO_FACTOR_FOR_STAFF = True
    assert api.get("/admin/").headers["Location"] == "/admin/login/?next=/admin/"
    assert api.get("/admin/login/?next=/admin/").status_code == 200
    assert api.get("/api/v2/api-keys", headers=create_key_header(margaret)).status_code == 200


# Operators


def test_who_has_no_rights_in_the_admin_gets_a_page(api: httpx.Client) -> None:
    sign_in(api, User.objects.create_user("reader"))
    page = api.get(api.get("/admin/").headers["Location"])
    assert page.status_code == 403
    assert "You are signed in as reader, and this account may not use it." in read_text(page)


def test_an_operator_turns_two_factor_sign_in_off(
    api: httpx.Client, phone: Phone, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter_password(api)
    enter_code(api, phone.show_code())
    monkeypatch.setattr("sys.stdin", StringIO("margaret"))
    call_command("reset_second_factor", "margaret")
    assert not is_signed_in(api)
    enter_password(api)
    assert is_signed_in(api)


def test_an_operator_who_does_not_confirm_or_errs_changes_nothing(
    phone: Phone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(""))
    User.objects.create_user("emma")
    for arguments, problem in ((["margaret"], "Nothing was changed"), (["emma", "--yes"], "emma has no second factor")):
        with pytest.raises(CommandError, match=problem):
            call_command("reset_second_factor", *arguments)
    assert SecondFactor.objects.exists()


def test_without_its_secret_key_a_phone_is_no_use_but_recovery_codes_are(
    api: httpx.Client, phone: Phone, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.SECRET_KEY = "another one"
    enter_password(api)
    assert enter_code(api, phone.show_code()).status_code == 200
    assert "cannot be decrypted: SECRET_KEY changed" in caplog.text
    enter_recovery_code(api, phone.recovery_codes[0])
    assert is_signed_in(api)


def test_a_forgotten_person_leaves_no_sign_in_that_waits_for_its_code(api: httpx.Client, phone: Phone) -> None:
    enter_password(api)
    call_command("forget_user", "margaret", yes=True)
    assert not Session.objects.exists()
    assert not SecondFactor.objects.exists()

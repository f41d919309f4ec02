"""A person is forgotten, and what is known of a person is exported."""

import json
import re
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from axes.models import AccessAttempt
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db.models import Model
from django.test import Client
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, RefreshToken
from pytest_django import Settings

from books.history.actors import get_or_create_actor
from books.models import Actor, Change, ImportFile
from books.writing import changes
from oauth import api_keys
from oauth.accounts import mails, totp
from oauth.models import AccountMail, APIKey, Authorization, ChangedRights, Profile, RecoveryCode
from oauth.scopes import get_user_rights
from oauth.tokens.revocations import REVOCATION_LIST
from tests.support import oauth_flows
from tests.support.admin_pages import dump_database, submit_action
from tests.support.books import build_book, build_isbn
from tests.support.endpoints import claim_deliveries, publish_event
from tests.support.webhooks_admin import DELIVERIES, ENDPOINTS, attempt_deliveries, build_endpoint_form
from webhooks.management.personal_data import ANONYMOUS_URL
from webhooks.models import Attempt, Delivery, Endpoint, EndpointSecret
from webhooks.outbox import format_event_time

pytestmark = pytest.mark.django_db

OPERATIONS = Path(__file__).parents[3] / "docs/operations/runbook.md"
USERNAME = "ada-of-the-desk"
# Nothing else in the database contains one of these.
NAMES = [
    USERNAME, "Lovelace", "ada@desk.example", "Ada's scanner", "Ada's app", "ada.example", "Ada's bell",
    "Ada's novels", "Ada's list.csv",
]  # fmt: skip
UPLOADED_AT = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
SCOPES = frozenset({"read", "write", "webhooks"})


class Scenario(NamedTuple):
    """A person who used the library in every way, and the credentials of it."""

    user: User
    headers: list[dict[str, str]]


def create_account() -> User:
    user = User.objects.create_user(USERNAME, NAMES[2], first_name="Ada", last_name=NAMES[1], is_staff=True)
    user.groups.set(Group.objects.filter(name__in=["Librarians", "Developers"]))
    return user


@pytest.fixture
def account(db: None) -> User:
    return create_account()


@pytest.fixture
def ada(api: httpx.Client, client: Client) -> Scenario:
    user = create_account()
    oauth_flows.submit_sign_in(api, USERNAME, "no password of hers")
    mails.request_reset(NAMES[2].upper(), "192.0.2.7", timezone.now())
    tokens = oauth_flows.obtain_tokens(api, user, oauth_flows.create_confidential_app())
    api.cookies.clear()
    oauth_flows.create_public_app(user=user)
    Application.objects.filter(user=user).update(name=NAMES[4], client_type="confidential")
    Profile.objects.create(user=user, language="de")
    _, key = api_keys.create_key(user, NAMES[3], SCOPES, timezone.now())
    headers = [{"X-API-Key": key}, oauth_flows.build_bearer_header(tokens["access_token"])]
    client.force_login(user)
    client.post("/admin/books/book/add/", build_book(isbn=build_isbn(1), available="on"))
    client.post("/admin/books/book/columns/", {"columns": ["author"], "rows": 100})
    client.post("/admin/books/book/views/save/", {"name": NAMES[7], "query": "genre=novel"})
    ImportFile.objects.create(user=user, name=NAMES[8], size=3, fingerprint=NAMES[8], created_at=UPLOADED_AT)
    form = build_endpoint_form(url=f"https://{NAMES[5]}/hook", description=NAMES[6], kinds=["*"])
    client.post(f"{ENDPOINTS}add/", form)
    for header in headers:
        assert api.post("/api/v2/books", json=build_book(), headers=header).status_code == 201
    attempt_deliveries()
    return Scenario(user, headers)


@pytest.fixture
def root(ada: Scenario, client: Client) -> User:
    """A superuser who did something to all that is hers."""
    root = User.objects.create_superuser("root")
    client.force_login(root)
    for page, action, rows in [
        ("/admin/oauth/apikey/", "revoke", APIKey.objects.all()),
        ("/admin/oauth/authorization/", "end", Authorization.objects.all()),
        ("/admin/oauth2_provider/application/", "make_new_secret", Application.objects.filter(name=NAMES[4])),
        (ENDPOINTS, "ping", Endpoint.objects.all()),
        (DELIVERIES, "redeliver", Delivery.objects.all()[:1]),
    ]:
        submit_action(client, page, action, *rows)
    password = "a long one of the administrator"
    form = {"password1": password, "password2": password}
    client.post(f"/admin/auth/user/{ada.user.pk}/password/", form)
    return root


def forget(name: str = USERNAME) -> None:
    call_command("forget_user", name, yes=True)


def find_names() -> list[str]:
    text = dump_database()
    return [name for name in NAMES if name in text]


def test_nobody_is_named_any_more(ada: Scenario, root: User) -> None:
    assert find_names() == NAMES
    forget()
    assert find_names() == []
    assert set(LogEntry.objects.values_list("user__username", "object_repr")) == {("root", "forgotten")}
    assert set(LogEntry.objects.values_list("content_type__model", flat=True)) == {
        "apikey", "application", "authorization", "delivery", "endpoint", "user",
    }  # fmt: skip


def test_what_the_person_did_stays_and_no_credential_is_good_any_more(
    ada: Scenario, api: httpx.Client, client: Client
) -> None:
    before = list(Change.objects.order_by("pk").values())
    assert client.get("/accounts/profile").status_code == 200
    forget()
    REVOCATION_LIST.invalidate()
    assert list(Change.objects.order_by("pk").values()) == before
    actors = Actor.objects.order_by("pk").values_list("channel", "user_id", "user_name", "app_name", "api_key_name")
    assert list(actors) == [("admin", None, "", "", ""), ("v2", None, "", "", ""), ("v2", None, "", "Bookshop", "")]
    assert [api.get("/api/v2/books", headers=header).status_code for header in ada.headers] == [401, 401]
    assert client.get("/accounts/profile").status_code == 302
    assert Session.objects.count() == 0
    assert Authorization.objects.exclude(ended_at=None).get().user is None


def test_others_keep_their_names_and_their_access(account: User, api: httpx.Client) -> None:
    other = oauth_flows.create_librarian("astrid")
    header = oauth_flows.create_key_header(other)
    api.post("/api/v2/books", json=build_book(), headers=header)
    forget()
    assert Actor.objects.get(user_name="astrid").api_key_name == "Test"
    assert api.post("/api/v2/books", json=build_book(), headers=header).status_code == 201


def test_webhooks_end_and_are_cleared(ada: Scenario) -> None:
    publish_event()
    forget()
    publish_event()
    endpoint = Endpoint.objects.get()
    assert (endpoint.state, endpoint.owner, endpoint.url) == ("deleted", None, ANONYMOUS_URL)
    assert (claim_deliveries(), EndpointSecret.objects.count()) == ([], 0)
    assert Attempt.objects.count() == 2
    call_command("clear_expired")
    assert (Attempt.objects.count(), Delivery.objects.count()) == (0, 0)


def test_to_forget_twice_changes_nothing(ada: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    forget()
    before = dump_database()
    capsys.readouterr()
    forget()
    assert capsys.readouterr().out == f"Nothing names {USERNAME}.\n"
    assert dump_database() == before


def test_a_deleted_account_is_forgotten_too(ada: Scenario, client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    client.post(f"/admin/auth/user/{ada.user.pk}/delete/", {"post": "yes"})
    assert USERNAME in find_names()
    forget()
    text = dump_database()
    assert (USERNAME in text, NAMES[3] in str(Actor.objects.values())) == (False, False)


def test_somebody_who_had_the_name_before_stays(account: User) -> None:
    get_or_create_actor(Actor.Channel.ADMIN, user_id=account.pk)
    User.objects.filter(pk=account.pk).update(username="ada.lovelace")
    forget()
    assert Actor.objects.get(user_id=account.pk).user_name == USERNAME


def test_the_last_superuser_stays(client: Client) -> None:
    root = User.objects.create_superuser("root")
    User.objects.create_superuser("former", is_active=False)
    with pytest.raises(CommandError, match="root is the last superuser"):
        forget("root")
    assert User.objects.get(pk=root.pk).is_active
    User.objects.create_superuser("second")
    forget("root")
    assert not User.objects.filter(pk=root.pk).exists()


def test_all_is_forgotten_or_nothing(account: User, settings: Settings) -> None:
    before = dump_database()
    settings.PERSONAL_DATA = [*settings.PERSONAL_DATA, "no.such.module"]
    with pytest.raises(ModuleNotFoundError):
        forget()
    assert dump_database() == before


def test_the_command_asks_first(
    account: User, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    oauth_flows.create_public_app(user=account)
    for response in ("", "yes"):
        monkeypatch.setattr("sys.stdin", StringIO(response))
        with pytest.raises(CommandError, match="Nothing was changed"):
            call_command("forget_user", USERNAME)
    assert "The app Shelf ends, which 0 people use." in capsys.readouterr().out
    assert User.objects.filter(pk=account.pk).exists()
    monkeypatch.setattr("sys.stdin", StringIO(USERNAME))
    call_command("forget_user", USERNAME)
    assert find_names() == []


def test_a_process_that_remembers_the_actor_brings_no_name_back(account: User) -> None:
    actor = get_or_create_actor(Actor.Channel.ADMIN, user_id=account.pk)
    forget()
    book = changes.create_book(build_book(), actor, timezone.now())
    assert Change.objects.select_related("actor").get(book_id=book.id).actor.identity == f"forgotten {actor.id}"
    assert find_names() == []


def export(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    call_command("export_user", name)
    known: dict[str, Any] = json.loads(capsys.readouterr().out)
    return known


def show(row: Model, *names: str) -> dict[str, Any]:
    """Returns these fields of a row as the export shows them."""
    values = {name: getattr(row, name) for name in names}
    return {name: format_event_time(value) if isinstance(value, datetime) else value for name, value in values.items()}


def test_all_that_is_known_of_a_person_is_exported(ada: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    authorization, attempt = Authorization.objects.get(), AccessAttempt.objects.get()
    factor, _ = totp.turn_on(ada.user, totp.generate_totp_secret(), 0, timezone.now())
    AccountMail.objects.filter(kind=AccountMail.Kind.FACTOR_ON).delete()
    ada.user.refresh_from_db()
    key = show(
        APIKey.objects.get(),
        *("id", "name", "prefix", "scopes", "created_at", "expires_at", "last_used_at", "revoked_at"),
        "authorization_id",
    )
    app = show(
        Application.objects.get(user=ada.user),
        *("client_id", "name", "client_type", "redirect_uris", "created", "updated"),
    )
    endpoint = show(
        Endpoint.objects.get(),
        *("id", "url", "kinds", "form", "description", "in_flight_limit", "state", "reason", "created_at"),
        "expires_at",
    )
    mail = show(AccountMail.objects.get(), "kind", "address", "network", "created_at", "sent_at", "language")
    personal = ("id", "username", "first_name", "last_name", "email", "is_active", "is_staff", "is_superuser")
    entries = [{"at": format_event_time(entry.action_time)} for entry in LogEntry.objects.order_by("pk")]
    changes = [{"book": change.book_id, "at": format_event_time(change.at)} for change in Change.objects.order_by("pk")]
    common = {"version": 1, "kind": "created", "operation": None, "before": None, "after": None}
    assert (key["name"], app["name"], endpoint["description"]) == ("Ada's scanner", "Ada's app", "Ada's bell")
    assert export(USERNAME, capsys) == {
        "account": {
            **show(ada.user, *personal, "date_joined", "last_login"),
            "language": "de",
            "groups": ["Developers", "Librarians"],
            "permissions": [],
        },
        "api_keys": [key],
        "apps": [app],
        "authorizations": [
            {
                **show(authorization, "scopes", "created_at", "refreshed_at", "ended_at"),
                "id": str(authorization.pk),
                "app": "Bookshop",
                "client_id": "bookshop",
            }
        ],
        "codes": 0,
        "access_tokens": 1,
        "refresh_tokens": 1,
        "changed_rights": [
            {
                **show(ChangedRights.objects.get(), "scopes", "changed_at"),
                "permissions": sorted(get_user_rights(ada.user.pk).permissions),
            }
        ],
        "second_factor": {**show(factor, "created_at", "wrong_codes"), "recovery_code_count": 10},
        "mails": [mail],
        "sessions": 2,
        "failed_sign_ins": [{"address": "127.0.0.1", "count": 1, "last_at": format_event_time(attempt.attempt_time)}],
        "admin_log": [
            {**entry, "action": "Addition", "type": type_name, "object": title, "message": "Added."}
            for entry, type_name, title in zip(
                entries,
                ("book", "endpoint"),
                ("Pride and Prejudice (Jane Austen, 1813)", "https://ada.example/hook"),
                strict=True,
            )
        ],
        "webhooks": [endpoint],
        "list_settings": {"columns": ["author"], "rows": 100},
        "saved_views": [{"name": "Ada's novels", "query": "genre=novel", "columns": ["title", "author"]}],
        "uploaded_files": [{"name": "Ada's list.csv", "size": 3, "uploaded_at": "2026-01-31T09:30:00.000000Z"}],
        "changes": [
            {
                **common,
                **change,
                "channel": channel,
                "actor": {"user": USERNAME, "app": app_name, "api_key": key_name, "source": None},
            }
            for change, channel, app_name, key_name in zip(
                changes,
                ("admin", "v2", "v2"),
                (None, None, "Bookshop"),
                (None, "Ada's scanner", None),
                strict=True,
            )
        ],
    }


def test_secrets_are_not_exported(ada: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    ada.user.set_password("a password of hers")
    ada.user.save()
    text = str(export(USERNAME, capsys))
    secrets = [ada.user.password, APIKey.objects.get().digest, EndpointSecret.objects.get().sealed]
    secrets += [AccessToken.objects.get().token_checksum, RefreshToken.objects.get().token_checksum]
    totp_secret = totp.generate_totp_secret()
    factor, codes = totp.turn_on(ada.user, totp_secret, 0, timezone.now())
    secrets += [totp_secret, factor.encrypted_secret, *codes, *RecoveryCode.objects.values_list("digest", flat=True)]
    secrets += [oauth_flows.SECRET, *ada.headers[0].values(), *Session.objects.values_list("pk", flat=True)]
    assert [secret for secret in secrets if secret in text] == []


def test_what_a_deleted_account_left_is_exported(ada: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    ada.user.delete()
    known = export(USERNAME, capsys)
    assert (known["account"], len(known["changes"])) == (None, 3)


def test_of_an_unknown_person_nothing_is_exported(ada: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    oauth_flows.create_public_app("nobodys")
    Endpoint.objects.create(url="https://nobodys.example", created_at=timezone.now())
    Authorization.objects.create(scopes="read", created_at=timezone.now())
    assert [name for name, value in export("nobody", capsys).items() if value] == []


def test_the_fields_of_the_export_are_documented(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    section = OPERATIONS.read_text().split("\n## Personal data\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)`", section, re.MULTILINE) == list(export("nobody", capsys))


def test_each_table_of_persons_is_known() -> None:
    """A table that is not here needs a place in the export, and must not keep what is forgotten."""
    assert {relation.related_model._meta.label for relation in User._meta.related_objects} == {
        "admin.LogEntry", "books.ImportFile", "books.ListSettings", "books.SavedView",
        "oauth.APIKey", "oauth.AccountMail", "oauth.Authorization", "oauth.Profile",
        "oauth.SecondFactor",
        "oauth2_provider.AccessToken", "oauth2_provider.Application", "oauth2_provider.DeviceGrant",
        "oauth2_provider.Grant", "oauth2_provider.IDToken", "oauth2_provider.RefreshToken", "webhooks.Endpoint",
    }  # fmt: skip

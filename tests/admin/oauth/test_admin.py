"""The admin of apps, granted access and API keys, through a browser."""

import re
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from oauth2_provider.models import Application

from library_site.admin import model_admins
from oauth import api_keys
from oauth.models import APIKey, Authorization
from tests.support import oauth_flows
from tests.support.admin_pages import dump_database, list_badges, list_rows, read_secrets, read_text, submit_action

APPS = "/admin/oauth2_provider/application/"
ACCESS = "/admin/oauth/authorization/"
KEYS = "/admin/oauth/apikey/"
READ = frozenset({"read"})


@pytest.fixture(autouse=True)
def delete_apps(db: None) -> None:
    """Deletes all apps, also that of the documentation pages."""
    Application.objects.all().delete()


def build_app_form(**changes: Any) -> dict[str, Any]:
    values = {
        "name": "Bookshop",
        "client_type": "confidential",
        "redirect_uris": oauth_flows.CALLBACK,
        "scopes": ["read", "write"],
    }
    return {**values, **changes}


def build_key_form(**changes: Any) -> dict[str, Any]:
    return {"name": "Night import", "scopes": ["read"], "expires_at_0": "", "expires_at_1": "", **changes}


def create_key(owner: User, name: str = "import") -> tuple[APIKey, str]:
    return api_keys.create_key(owner, name, READ, timezone.now())


# Apps


def test_a_developer_registers_an_app(developer: Client, ada: User, api: httpx.Client) -> None:
    secrets = read_secrets(developer.post(f"{APPS}add/", build_app_form()))
    app = Application.objects.get(client_id=secrets["Client ID"])
    assert (app.name, app.client_type, app.user, app.allowance.scopes) == (
        "Bookshop",
        "confidential",
        ada,
        "read write",
    )
    code = oauth_flows.obtain_code(api, oauth_flows.create_librarian(), app)
    form = oauth_flows.build_code_request(app, code, client_secret=secrets["Client secret"])
    assert api.post("/oauth/token", data=form).status_code == 200


def test_a_public_app_is_shown_no_secret(developer: Client) -> None:
    response = developer.post(f"{APPS}add/", build_app_form(client_type="public"), follow=True)
    assert Application.objects.get().client_id in read_text(response)
    assert "A public app has no secret." in read_text(response)


def test_a_developer_changes_an_app(developer: Client, ada: User) -> None:
    app = oauth_flows.create_confidential_app(user=ada)
    secret = app.client_secret
    form = build_app_form(name="Café", redirect_uris="https://a.example/\r\nhttp://localhost/", scopes=["read"])
    developer.post(f"{APPS}{app.pk}/change/", form | {"client_type": "public", "client_id": "x", "user": ""})
    app = Application.objects.get(pk=app.pk)
    assert (app.name, app.allowance.scopes) == ("Café", "read")
    assert app.redirect_uris.split() == ["https://a.example/", "http://localhost/"]
    assert (app.client_type, app.client_id, app.client_secret, app.user) == ("confidential", "bookshop", secret, ada)


def create_independent_app(**others: Any) -> Application:
    """It acts for itself, and has no redirect URI."""
    app = oauth_flows.create_confidential_app(scopes="read", **others)
    app.authorization_grant_type, app.redirect_uris = Application.GRANT_CLIENT_CREDENTIALS, ""
    app.save()
    return app


def test_developers_do_not_change_an_app_that_acts_for_itself(developer: Client, ada: User) -> None:
    """The permissions of people limit other apps; this one has the scopes of its page."""
    app = create_independent_app(user=ada)
    assert developer.post(f"{APPS}{app.pk}/change/", build_app_form(redirect_uris="")).status_code == 403
    assert Application.objects.get().allowance.scopes == "read"


def test_a_superuser_changes_an_app_that_acts_for_itself(root: Client) -> None:
    app = create_independent_app()
    assert root.post(f"{APPS}{app.pk}/change/", build_app_form(redirect_uris="", user="")).status_code == 302
    assert Application.objects.get().allowance.scopes == "read write"
    Authorization.objects.create(application=app, scopes="read", created_at=timezone.now())
    assert "Bookshop has access of its own" in read_text(root.get(ACCESS))


def test_a_superuser_gives_an_app_to_a_developer(root: Client, ada: User) -> None:
    root.post(f"{APPS}add/", build_app_form(user="ada"))
    root.post(f"{APPS}add/", build_app_form(name="Nobody's", user=""))
    assert {app.name: app.user for app in Application.objects.all()} == {"Bookshop": ada, "Nobody's": None}


def test_a_new_secret_is_shown_once_and_replaces_the_old(developer: Client, ada: User, api: httpx.Client) -> None:
    app = oauth_flows.create_confidential_app(user=ada)
    response = submit_action(developer, APPS, "make_new_secret", app)
    secret = read_secrets(response)["Client secret"]

    def status(secret: str) -> int:
        return api.post("/oauth/introspect", data={"token": "any"}, auth=(app.client_id, secret)).status_code

    assert (status(oauth_flows.SECRET), status(secret)) == (401, 200)
    assert secret not in dump_database()
    assert "Made a new secret." in read_text(developer.get(f"{APPS}{app.pk}/history/"))


def test_a_new_secret_is_for_one_confidential_app(developer: Client, ada: User) -> None:
    confidential, public = oauth_flows.create_confidential_app(user=ada), oauth_flows.create_public_app(user=ada)
    for selected in ([public], [confidential, public]):
        response = submit_action(developer, APPS, "make_new_secret", *selected)
        assert "Nothing was changed: select one confidential app." in read_text(response)
    assert Application.objects.get(pk=confidential.pk).client_secret == confidential.client_secret


@pytest.mark.parametrize("method", ["page", "action"])
def test_deleting_an_app_ends_its_access(developer: Client, ada: User, api: httpx.Client, method: str) -> None:
    app = oauth_flows.create_confidential_app(user=ada)
    token = oauth_flows.obtain_tokens(api, oauth_flows.create_reader(), app)["access_token"]
    address = f"{APPS}{app.pk}/delete/" if method == "page" else APPS
    form = {"action": "delete_selected", "_selected_action": str(app.pk)} if method == "action" else {}
    page = developer.post(address, form) if form else developer.get(address)
    assert "Bookshop: ends the access of 1 person" in read_text(page)
    developer.post(address, {**form, "post": "yes"})
    assert not Application.objects.exists()
    assert Authorization.objects.get().ended_at is not None
    assert api.get("/api/books", headers=oauth_flows.build_bearer_header(token)).status_code == 401


def test_tokens_and_rows_have_no_pages(root: Client) -> None:
    tables = [f"oauth2_provider/{model}/" for model in ("accesstoken", "refreshtoken", "grant", "idtoken")]
    for page in [*tables, *(f"r/{row}" for row in ("1/1/", "1/x/", "99999999999999999999/1/", ""))]:
        assert root.get(f"/admin/{page}").status_code == 404, page


# API keys


def test_a_developer_makes_a_key(developer: Client, ada: User, api: httpx.Client) -> None:
    key = read_secrets(developer.post(f"{KEYS}add/", build_key_form()))["API key"]
    stored = APIKey.objects.get()
    assert (stored.name, stored.owner, stored.scopes, stored.expires_at) == ("Night import", ada, "read", None)
    assert f"lib_{stored.prefix}" in read_text(developer.get(f"{KEYS}{stored.pk}/change/"))
    assert api.get("/api/books", headers={"X-API-Key": key}).status_code == 200


def test_a_key_can_expire(developer: Client) -> None:
    tomorrow = (timezone.now() + timedelta(days=1)).replace(microsecond=0)
    developer.post(
        f"{KEYS}add/", build_key_form(expires_at_0=f"{tomorrow:%Y-%m-%d}", expires_at_1=f"{tomorrow:%H:%M:%S}")
    )
    assert APIKey.objects.get().expires_at == tomorrow


def test_developers_make_keys_for_themselves_and_superusers_for_active_people(developer: Client, ada: User) -> None:
    astrid = oauth_flows.create_librarian("astrid")
    developer.post(f"{KEYS}add/", build_key_form(owner="astrid"))
    assert APIKey.objects.get().owner == ada
    developer.force_login(User.objects.create_superuser("root"))
    developer.post(f"{KEYS}add/", build_key_form(owner="astrid", scopes=["read", "write"]))
    assert APIKey.objects.latest("pk").owner == astrid
    User.objects.create_user("gone", is_active=False)
    response = developer.post(f"{KEYS}add/", build_key_form(owner="gone"))
    assert list(response.context["adminform"].form.errors) == ["owner"]


def test_a_key_is_offered_only_the_scopes_of_its_owner(developer: Client, ada: User) -> None:
    page = read_text(developer.get(f"{KEYS}add/"))
    assert [f'value="{scope}"' in page for scope in ("read", "write", "webhooks")] == [True, False, True]
    response = developer.post(f"{KEYS}add/", build_key_form(scopes=["read", "write"]))
    assert list(response.context["adminform"].form.errors) == ["scopes"]
    # A superuser is told what the owner may not have.
    developer.force_login(User.objects.create_superuser("root"))
    response = developer.post(f"{KEYS}add/", build_key_form(owner="ada", scopes=["read", "write"]))
    assert response.context["adminform"].form.errors == {"scopes": ["ada may not have: write."]}
    assert not APIKey.objects.exists()


def test_keys_and_access_show_their_state_as_a_word(developer: Client, ada: User) -> None:
    now, app = timezone.now(), oauth_flows.create_confidential_app(user=ada)
    create_key(ada, "active")
    api_keys.create_key(ada, "expired", READ, now - timedelta(days=2), now - timedelta(days=1))
    revoked, _ = create_key(ada, "revoked")
    api_keys.revoke_keys(APIKey.objects.filter(pk=revoked.pk), now)
    for days_ago, ended_at in ((0, None), (1000, None), (1, now)):
        created_at = now - timedelta(days=days_ago)
        Authorization.objects.create(user=ada, application=app, scopes="read", created_at=created_at, ended_at=ended_at)
    assert list_badges(developer.get(KEYS)) == ["Revoked", "Expired", "Active"]
    assert list_badges(developer.get(ACCESS)) == ["Active", "Ended", "Expired"]


def test_too_many_keys_are_explained(developer: Client, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_keys, "MAX_KEYS_PER_USER", 1)
    create_key(ada)
    response = developer.post(f"{KEYS}add/", build_key_form(), follow=True)
    assert "No key was made: 1 are there already; revoke one first." in read_text(response)
    assert APIKey.objects.count() == 1


def test_a_developer_revokes_a_key(developer: Client, ada: User, api: httpx.Client) -> None:
    (revoked, key), (active, other) = create_key(ada), create_key(ada)
    response = submit_action(developer, KEYS, "revoke", revoked, query="q=ada")
    assert "The key is revoked." in read_text(response)
    statuses = [api.get("/api/books", headers={"X-API-Key": text}).status_code for text in (key, other)]
    assert statuses == [401, 200]
    assert "Revoked." in read_text(developer.get(f"{KEYS}{revoked.pk}/history/"))
    assert list_rows(developer.get(f"{KEYS}?revoked_at__isempty=1")) == [active]


def test_a_page_has_a_button_for_what_can_be_done_now(root: Client, ada: User) -> None:
    (active, _), (revoked, _) = create_key(ada), create_key(ada)
    api_keys.revoke_keys(APIKey.objects.filter(pk=revoked.pk), timezone.now())
    access, ended = (
        Authorization.objects.create(scopes="read", created_at=timezone.now(), ended_at=ended_at)
        for ended_at in (None, timezone.now())
    )
    guest = User.objects.create_user("guest", "guest@library.example")
    member = User.objects.create_user("member", "member@library.example", "correct horse battery staple")
    buttons = {
        f"{KEYS}{active.pk}/change/": ["revoke"],
        f"{KEYS}{revoked.pk}/change/": [],
        f"{ACCESS}{access.pk}/change/": ["end"],
        f"{ACCESS}{ended.pk}/change/": [],
        f"{APPS}{oauth_flows.create_confidential_app(user=ada).pk}/change/": ["make_new_secret"],
        f"{APPS}{oauth_flows.create_public_app(user=ada).pk}/change/": [],
        f"/admin/auth/user/{guest.pk}/change/": ["invite_again"],
        f"/admin/auth/user/{member.pk}/change/": [],
    }
    found = {page: re.findall(r'name="action" value="(\w+)"', read_text(root.get(page))) for page in buttons}
    assert found == buttons


def test_a_key_is_neither_changed_nor_deleted(root: Client) -> None:
    key, _ = create_key(oauth_flows.create_reader())
    assert root.post(f"{KEYS}{key.pk}/change/", build_key_form(scopes=["read", "write"])).status_code == 403
    assert root.post(f"{KEYS}{key.pk}/delete/", {"post": "yes"}).status_code == 403
    submit_action(root, KEYS, "delete_selected", key)
    assert APIKey.objects.get().scopes == "read"


# Access


def test_a_developer_ends_access_to_an_app(developer: Client, ada: User, api: httpx.Client) -> None:
    app = oauth_flows.create_confidential_app(user=ada)
    tokens = oauth_flows.obtain_tokens(api, oauth_flows.create_reader(), app)
    (access,) = list_rows(developer.get(f"{ACCESS}?q=reader"))
    response = submit_action(developer, ACCESS, "end", access, query="q=reader")
    assert "The access is ended." in read_text(response)
    assert (
        api.post("/oauth/refresh", data=oauth_flows.build_refresh_request(app, tokens["refresh_token"])).status_code
        == 400
    )
    assert list_rows(developer.get(f"{ACCESS}?ended_at__isempty=1")) == []


def test_access_is_neither_made_nor_changed_nor_deleted(root: Client) -> None:
    access = Authorization.objects.create(scopes="read", created_at=timezone.now())
    pages = ["add/", f"{access.pk}/change/", f"{access.pk}/delete/"]
    assert [root.post(f"{ACCESS}{page}", {"scopes": "write", "post": "yes"}).status_code for page in pages] == [403] * 3
    assert Authorization.objects.get().scopes == "read"


# Apps, keys and access


def test_a_secret_is_shown_once(developer: Client, caplog: pytest.LogCaptureFixture) -> None:
    forms: list[tuple[str, dict[str, Any], str, Any, list[str]]] = [
        (APPS, build_app_form(), "Client secret", Application, ["change", "history", "delete"]),
        (KEYS, build_key_form(), "API key", APIKey, ["change", "history"]),
    ]
    for address, form, name, model, pages in forms:
        with caplog.at_level("DEBUG"):
            secret = read_secrets(developer.post(f"{address}add/", form))[name]
        row = model.objects.get()
        for page in (address, f"{address}add/", *(f"{address}{row.pk}/{page}/" for page in pages), "/admin/"):
            response = developer.get(page)
            assert response.status_code == 200
            assert secret not in read_text(response)
            assert (row.digest if model is APIKey else row.client_secret) not in read_text(response)
        for place in (dump_database(), str(dict(developer.session)), str(developer.cookies), caplog.text):
            assert secret not in place


INVALID_VALUES: list[tuple[str, str, list[Any]]] = [
    (APPS, "name", [" ", "n" * 101, "a\0b", "a\u202eb"]),
    (APPS, "client_type", ["", "trusted"]),
    (APPS, "redirect_uris", [" ", "http://app.example/", "https://app.example/\0", "https://[::1"]),
    (APPS, "scopes", [[], ["read", "admin"]]),
    (KEYS, "name", ["", "a\0b"]),
    (KEYS, "scopes", [[], ["admin"]]),
    (KEYS, "expires_at", ["2020-01-01", "soon", "\0"]),
]


def test_an_invalid_field_is_explained(developer: Client) -> None:
    for address, field, values in INVALID_VALUES:
        build_form = build_app_form if address == APPS else build_key_form
        for value in values:
            changes = {field: value, f"{field}_0": value, f"{field}_1": "00:00"}
            response = developer.post(f"{address}add/", build_form(**changes))
            assert list(response.context["adminform"].form.errors) == [field], value
    assert not Application.objects.exists()
    assert not APIKey.objects.exists()


def test_developers_see_and_change_their_own_rows(developer: Client, ada: User) -> None:
    now, reader = timezone.now(), oauth_flows.create_reader()
    apps = oauth_flows.create_confidential_app(user=ada), oauth_flows.create_confidential_app("theirs", user=reader)
    oauth_flows.create_confidential_app("nobodys")
    keys = create_key(ada)[0], create_key(reader)[0]
    access = [Authorization.objects.create(user=reader, application=app, scopes="read", created_at=now) for app in apps]
    rows: list[tuple[str, Any, str]] = [
        (APPS, apps, "make_new_secret"),
        (KEYS, keys, "revoke"),
        (ACCESS, access, "end"),
    ]
    for address, (own, other), action in rows:
        assert list_rows(developer.get(address)) == [own]
        before = type(other).objects.filter(pk=other.pk).values().get()
        for page in ("change", "delete", "history"):
            response = developer.post(f"{address}{other.pk}/{page}/", build_app_form(name="Mine", post="yes"))
            assert response.headers.get("Location") == address or response.status_code in (403, 404), (address, page)
        submit_action(developer, address, action, other)
        assert type(other).objects.filter(pk=other.pk).values().get() == before


# All of these pages


def test_a_person_with_apps_and_keys_can_be_deleted(root: Client, ada: User) -> None:
    oauth_flows.create_confidential_app(user=ada)
    create_key(ada)
    page = f"/admin/auth/user/{ada.pk}/delete/"
    assert "ada: their apps and API keys are deleted, too." in read_text(root.get(page))
    root.post(page, {"post": "yes"})
    assert not User.objects.filter(pk=ada.pk).exists()
    assert not APIKey.objects.exists()


def test_a_long_list_is_not_deleted_by_one_action(root: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_admins, "MAX_COUNT", 1)
    readers = [oauth_flows.create_reader(f"reader-{number}") for number in range(2)]
    form = {"action": ["", "delete_selected", "invite_again"], "_selected_action": [readers[0].pk]}
    for across, index, words in (
        ("1", "1", "Nothing was deleted: select 1 at most."),
        ("yes", "1", "Nothing was deleted: select 1 at most."),
        ("1", "2", "not invited"),
    ):
        page = root.post("/admin/auth/user/", {**form, "select_across": across, "index": index}, follow=True)
        assert words in read_text(page), (across, index)
    assert User.objects.filter(pk=readers[0].pk).exists()

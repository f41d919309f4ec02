"""The desk for apps, granted access and API keys, as a browser meets it."""

from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from oauth2_provider.models import Application

from oauth import api_keys
from oauth.models import APIKey, Authorization
from tests.support import oauth_flows
from tests.support.admin_pages import ODD_IDS, ODD_QUERIES, ODD_SELECTIONS, acted, everything_stored, listed, text, told

APPS = "/admin/oauth2_provider/application/"
ACCESS = "/admin/oauth/authorization/"
KEYS = "/admin/oauth/apikey/"
READ = frozenset({"read"})


@pytest.fixture(autouse=True)
def no_app(db: None) -> None:
    """Nor the documentation's own."""
    Application.objects.all().delete()


def app_form(**changed: Any) -> dict[str, Any]:
    fit = {
        "name": "Bookshop",
        "client_type": "confidential",
        "redirect_uris": oauth_flows.CALLBACK,
        "scopes": ["read", "write"],
    }
    return {**fit, **changed}


def key_form(**changed: Any) -> dict[str, Any]:
    return {"name": "Night import", "scopes": ["read"], "expires_at_0": "", "expires_at_1": "", **changed}


def key_of(owner: User, name: str = "import") -> tuple[APIKey, str]:
    return api_keys.create_key(owner, name, READ, timezone.now())


# Apps


def test_a_developer_registers_an_app(developer: Client, ada: User, api: httpx.Client) -> None:
    shown = told(developer.post(f"{APPS}add/", app_form()))
    app = Application.objects.get(client_id=shown["client_id"])
    assert (app.name, app.client_type, app.user, app.allowance.scopes) == (
        "Bookshop",
        "confidential",
        ada,
        "read write",
    )
    code = oauth_flows.code_for(api, oauth_flows.librarian(), app)
    form = oauth_flows.redemption(app, code, client_secret=shown["client_secret"])
    assert api.post("/oauth/token", data=form).status_code == 200


def test_a_secret_is_shown_once(developer: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        secret = told(developer.post(f"{APPS}add/", app_form()))["client_secret"]
    app = Application.objects.get()
    pages = [APPS, f"{APPS}add/", f"{APPS}{app.pk}/change/", f"{APPS}{app.pk}/history/", f"{APPS}{app.pk}/delete/"]
    for page in [*pages, "/admin/"]:
        answer = developer.get(page)
        assert answer.status_code == 200
        assert secret not in text(answer)
        assert app.client_secret not in text(answer)
    assert secret not in everything_stored()
    assert secret not in str(dict(developer.session))
    assert secret not in str(developer.cookies)
    assert secret not in caplog.text


def test_a_public_app_is_shown_no_secret(developer: Client) -> None:
    answer = developer.post(f"{APPS}add/", app_form(client_type="public"))
    assert told(answer) == {"client_id": Application.objects.get().client_id}
    assert "A public app has no secret." in text(answer)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("name", " "),
        ("name", "n" * 101),
        ("name", "a\0b"),
        ("name", "a\u202eb"),
        ("client_type", ""),
        ("client_type", "trusted"),
        ("redirect_uris", " "),
        ("redirect_uris", "http://app.example/"),
        ("redirect_uris", "https://app.example/#here"),
        ("redirect_uris", "https://app.example/\0"),
        ("redirect_uris", "https://[::1"),
        ("scopes", []),
        ("scopes", ["read", "admin"]),
    ],
)
def test_an_unfit_app_is_explained(developer: Client, member: str, value: Any) -> None:
    answer = developer.post(f"{APPS}add/", app_form(**{member: value}))
    assert list(answer.context["adminform"].form.errors) == [member]
    assert not Application.objects.exists()


def test_a_developer_changes_an_app(developer: Client, ada: User) -> None:
    app = oauth_flows.confidential_app(user=ada)
    secret = app.client_secret
    changed = app_form(name="Café", redirect_uris="https://a.example/\r\nhttp://localhost/", scopes=["read"])
    developer.post(f"{APPS}{app.pk}/change/", changed | {"client_type": "public", "client_id": "x", "user": ""})
    app = Application.objects.get(pk=app.pk)
    assert (app.name, app.allowance.scopes) == ("Café", "read")
    assert app.redirect_uris.split() == ["https://a.example/", "http://localhost/"]
    assert (app.client_type, app.client_id, app.client_secret, app.user) == ("confidential", "bookshop", secret, ada)


def test_the_page_of_an_app_shows_what_it_may_be_granted(developer: Client, ada: User) -> None:
    app = oauth_flows.confidential_app(user=ada)
    form = developer.get(f"{APPS}{app.pk}/change/").context["adminform"].form
    assert form["scopes"].value() == ["read", "write"]
    assert "Add, change and delete books" in str(form["scopes"])


def test_developers_see_their_own_apps(developer: Client, ada: User) -> None:
    own = oauth_flows.confidential_app(user=ada)
    oauth_flows.confidential_app("theirs", user=oauth_flows.reader())
    oauth_flows.confidential_app("nobodys")
    assert listed(developer.get(APPS)) == [own]


@pytest.mark.parametrize("page", ["change", "delete", "history"])
def test_developers_do_not_reach_the_apps_of_others(developer: Client, page: str) -> None:
    theirs = oauth_flows.confidential_app(user=oauth_flows.reader())
    developer.get(f"{APPS}{theirs.pk}/{page}/")
    answer = developer.post(f"{APPS}{theirs.pk}/{page}/", app_form(name="Mine", post="yes"))
    assert answer.headers.get("Location") == "/admin/" or answer.status_code == 404
    assert Application.objects.get(pk=theirs.pk).name == "Bookshop"


def test_developers_make_no_secrets_for_the_apps_of_others(developer: Client) -> None:
    theirs = oauth_flows.confidential_app(user=oauth_flows.reader())
    acted(developer, APPS, "make_new_secret", theirs)
    assert Application.objects.get(pk=theirs.pk).client_secret == theirs.client_secret


def test_a_superuser_gives_an_app_to_a_developer(root: Client, ada: User) -> None:
    root.post(f"{APPS}add/", app_form(user=ada.pk))
    root.post(f"{APPS}add/", app_form(name="Nobody's", user=""))
    assert {app.name: app.user for app in Application.objects.all()} == {"Bookshop": ada, "Nobody's": None}


@pytest.mark.parametrize("owner", ["0", "abc", "\0", "9" * 23, "9" * 5000, "-1", "1.5"])
def test_an_owner_who_is_none_is_explained(root: Client, owner: str) -> None:
    answer = root.post(f"{APPS}add/", app_form(user=owner))
    assert list(answer.context["adminform"].form.errors) == ["user"]


def test_a_new_secret_is_shown_once_and_replaces_the_old(developer: Client, ada: User, api: httpx.Client) -> None:
    app = oauth_flows.confidential_app(user=ada)
    answer = acted(developer, APPS, "make_new_secret", app)
    secret = told(answer)["client_secret"]

    def status(secret: str) -> int:
        return api.post("/oauth/introspect", data={"token": "any"}, auth=(app.client_id, secret)).status_code

    assert (status(oauth_flows.SECRET), status(secret)) == (401, 200)
    assert secret not in everything_stored()
    assert "Made a new secret." in text(developer.get(f"{APPS}{app.pk}/history/"))


def test_a_new_secret_is_for_one_confidential_app(developer: Client, ada: User) -> None:
    confidential, public = oauth_flows.confidential_app(user=ada), oauth_flows.public_app(user=ada)
    for selected in ([public], [confidential, public]):
        answer = acted(developer, APPS, "make_new_secret", *selected)
        assert "Nothing was changed: select one confidential app." in text(answer)
    assert Application.objects.get(pk=confidential.pk).client_secret == confidential.client_secret


@pytest.mark.parametrize("how", ["page", "action"])
def test_deleting_an_app_ends_its_access(developer: Client, ada: User, api: httpx.Client, how: str) -> None:
    app = oauth_flows.confidential_app(user=ada)
    token = oauth_flows.tokens_for(api, oauth_flows.reader(), app)["access_token"]
    address = f"{APPS}{app.pk}/delete/" if how == "page" else APPS
    form = {"action": "delete_selected", "_selected_action": str(app.pk)} if how == "action" else {}
    page = developer.post(address, form) if form else developer.get(address)
    assert "Bookshop: ends the access of 1 people" in text(page)
    developer.post(address, {**form, "post": "yes"})
    assert not Application.objects.exists()
    assert Authorization.objects.get().ended_at is not None
    assert api.get("/api/books", headers=oauth_flows.bearer(token)).status_code == 401


@pytest.mark.parametrize("model", ["accesstoken", "refreshtoken", "grant", "idtoken"])
def test_there_are_no_pages_of_tokens(root: Client, model: str) -> None:
    assert root.get(f"/admin/oauth2_provider/{model}/").status_code == 404


@pytest.mark.parametrize("row", ["1/1/", "1/x/", "x/1/", "99999999999999999999/1/", ""])
def test_rows_have_no_pages_outside_the_admin(root: Client, row: str) -> None:
    assert root.get(f"/admin/r/{row}").status_code == 404


# API keys


def test_a_developer_makes_a_key(developer: Client, ada: User, api: httpx.Client) -> None:
    key = told(developer.post(f"{KEYS}add/", key_form()))["API key"]
    made = APIKey.objects.get()
    assert (made.name, made.owner, made.scopes, made.expires_at) == ("Night import", ada, "read", None)
    assert api.get("/api/books", headers={"X-API-Key": key}).status_code == 200


def test_a_key_is_shown_once(developer: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        key = told(developer.post(f"{KEYS}add/", key_form()))["API key"]
    made = APIKey.objects.get()
    for page in (KEYS, f"{KEYS}add/", f"{KEYS}{made.pk}/change/", f"{KEYS}{made.pk}/history/", "/admin/"):
        answer = developer.get(page)
        assert answer.status_code == 200
        assert key not in text(answer)
        assert made.digest not in text(answer)
    assert key not in everything_stored()
    assert key not in str(dict(developer.session))
    assert key not in caplog.text
    assert f"lib_{made.prefix}" in text(developer.get(KEYS))


def test_a_key_can_expire(developer: Client) -> None:
    tomorrow = (timezone.now() + timedelta(days=1)).replace(microsecond=0)
    developer.post(f"{KEYS}add/", key_form(expires_at_0=f"{tomorrow:%Y-%m-%d}", expires_at_1=f"{tomorrow:%H:%M:%S}"))
    assert APIKey.objects.get().expires_at == tomorrow


@pytest.mark.parametrize(
    ("member", "changed"),
    [
        ("name", {"name": ""}),
        ("name", {"name": "a\0b"}),
        ("name", {"name": "n" * 101}),
        ("scopes", {"scopes": []}),
        ("scopes", {"scopes": ["admin"]}),
        ("expires_at", {"expires_at_0": "2020-01-01", "expires_at_1": "00:00"}),
        ("expires_at", {"expires_at_0": "soon", "expires_at_1": "\0"}),
    ],
)
def test_an_unfit_key_is_explained(developer: Client, member: str, changed: dict[str, Any]) -> None:
    answer = developer.post(f"{KEYS}add/", key_form(**changed))
    assert list(answer.context["adminform"].form.errors) == [member]
    assert not APIKey.objects.exists()


def test_developers_make_keys_for_themselves_alone(developer: Client, ada: User) -> None:
    developer.post(f"{KEYS}add/", key_form(owner=oauth_flows.librarian().pk))
    assert APIKey.objects.get().owner == ada


def test_a_superuser_makes_a_key_for_someone(root: Client) -> None:
    astrid = oauth_flows.librarian("astrid")
    answer = root.post(f"{KEYS}add/", key_form(owner=astrid.pk, scopes=["read", "write"]))
    assert "may not" not in text(answer)
    assert APIKey.objects.get().owner == astrid


def test_nobody_makes_a_key_for_who_is_gone(root: Client) -> None:
    gone = User.objects.create_user("gone", is_active=False)
    answer = root.post(f"{KEYS}add/", key_form(owner=gone.pk))
    assert list(answer.context["adminform"].form.errors) == ["owner"]


def test_scopes_that_the_owner_may_not_have_are_told(developer: Client) -> None:
    answer = developer.post(f"{KEYS}add/", key_form(scopes=["read", "write"]))
    assert "ada may not have these scopes now, and the key is not good for them: write." in text(answer)


def test_too_many_keys_are_explained(developer: Client, ada: User) -> None:
    for _ in range(api_keys.MAX_KEYS_PER_USER):
        key_of(ada)
    answer = developer.post(f"{KEYS}add/", key_form(), follow=True)
    assert "No key was made: 100 are there already; revoke one first." in text(answer)
    assert APIKey.objects.count() == api_keys.MAX_KEYS_PER_USER


def test_developers_see_their_own_keys(developer: Client, ada: User) -> None:
    own, _ = key_of(ada)
    theirs, _ = key_of(oauth_flows.reader())
    assert listed(developer.get(KEYS)) == [own]
    assert developer.get(f"{KEYS}{theirs.pk}/change/").headers["Location"] == "/admin/"


def test_a_developer_revokes_a_key(developer: Client, ada: User, api: httpx.Client) -> None:
    (revoked, key), (kept, other) = key_of(ada), key_of(ada)
    answer = acted(developer, KEYS, "revoke", revoked, query="q=ada")
    assert "Keys revoked: 1." in text(answer)
    statuses = [api.get("/api/books", headers={"X-API-Key": text}).status_code for text in (key, other)]
    assert statuses == [401, 200]
    assert "Revoked." in text(developer.get(f"{KEYS}{revoked.pk}/history/"))
    assert listed(developer.get(f"{KEYS}?revoked_at__isempty=1")) == [kept]


def test_developers_do_not_revoke_the_keys_of_others(developer: Client) -> None:
    theirs, _ = key_of(oauth_flows.reader())
    acted(developer, KEYS, "revoke", theirs)
    assert APIKey.objects.get().revoked_at is None


def test_a_key_is_neither_changed_nor_deleted(root: Client) -> None:
    key, _ = key_of(oauth_flows.reader())
    assert root.post(f"{KEYS}{key.pk}/change/", key_form(scopes=["read", "write"])).status_code == 403
    assert root.post(f"{KEYS}{key.pk}/delete/", {"post": "yes"}).status_code == 403
    acted(root, KEYS, "delete_selected", key)
    assert APIKey.objects.get().scopes == "read"


# Access


def test_a_developer_ends_access_to_an_app(developer: Client, ada: User, api: httpx.Client) -> None:
    app = oauth_flows.confidential_app(user=ada)
    tokens = oauth_flows.tokens_for(api, oauth_flows.reader(), app)
    (access,) = listed(developer.get(f"{ACCESS}?q=reader"))
    answer = acted(developer, ACCESS, "end", access, query="q=reader")
    assert "Access ended: 1." in text(answer)
    assert api.post("/oauth/refresh", data=oauth_flows.refreshing(app, tokens["refresh_token"])).status_code == 400
    assert listed(developer.get(f"{ACCESS}?ended_at__isempty=1")) == []


def test_developers_see_access_to_their_own_apps(developer: Client, ada: User) -> None:
    now, reader = timezone.now(), oauth_flows.reader()
    own, theirs = (
        Authorization.objects.create(user=reader, application=app, scopes="read", created_at=now)
        for app in (oauth_flows.confidential_app(user=ada), oauth_flows.public_app())
    )
    assert listed(developer.get(ACCESS)) == [own]
    acted(developer, ACCESS, "end", theirs)
    assert not Authorization.objects.exclude(ended_at=None).exists()


def test_access_is_neither_made_nor_changed_nor_deleted(root: Client) -> None:
    access = Authorization.objects.create(scopes="read", created_at=timezone.now())
    pages = ["add/", f"{access.pk}/change/", f"{access.pk}/delete/"]
    assert [root.post(f"{ACCESS}{page}", {"scopes": "write", "post": "yes"}).status_code for page in pages] == [403] * 3
    assert Authorization.objects.get().scopes == "read"


# All of them


def test_staff_outside_the_group_sees_none_of_it(client: Client, db: None) -> None:
    client.force_login(User.objects.create_user("visitor", is_staff=True))
    assert [client.get(desk).status_code for desk in (APPS, ACCESS, KEYS)] == [403] * 3


def test_what_developers_may_do(db: None) -> None:
    ours = Permission.objects.exclude(content_type__app_label="webhooks")
    held = ours.filter(group__name="Developers").values_list("codename", flat=True)
    assert set(held) == {
        *(f"{action}_application" for action in ("add", "change", "delete", "view")),
        *(f"{action}_apikey" for action in ("add", "change", "view")),
        *(f"{action}_authorization" for action in ("change", "view")),
    }


def test_a_person_with_apps_and_keys_can_be_deleted(root: Client, ada: User) -> None:
    oauth_flows.confidential_app(user=ada)
    key_of(ada)
    page = f"/admin/auth/user/{ada.pk}/delete/"
    assert "ada, with the apps and API keys that are theirs" in text(root.get(page))
    root.post(page, {"post": "yes"})
    assert not User.objects.filter(pk=ada.pk).exists()
    assert not APIKey.objects.exists()


@pytest.mark.parametrize("desk", [APPS, ACCESS, KEYS])
@pytest.mark.parametrize(
    "query",
    [
        *ODD_QUERIES,
        "client_type__exact=%00",
        "client_type__exact=trusted",
        "client_secret__startswith=g",
        "digest__startswith=0",
        "user__password__startswith=p",
        "owner__password__regex=(",
        "ended_at__isempty=%00",
        "revoked_at__isempty=maybe",
    ],
)
def test_no_address_fails(root: Client, desk: str, query: str) -> None:
    answer: Any = root.get(f"{desk}?{query}", follow=True)
    assert answer.status_code in (200, 400)


@pytest.mark.parametrize("column", ["client_secret", "user__password", "hash_client_secret", "user__email"])
def test_columns_are_not_probed(root: Client, column: str) -> None:
    assert root.get(f"{APPS}?{column}__startswith=p").status_code == 400


@pytest.mark.parametrize(("desk", "action"), [(APPS, "make_new_secret"), (ACCESS, "end"), (KEYS, "revoke")])
@pytest.mark.parametrize("pk", ODD_SELECTIONS)
def test_a_selection_of_nothing_changes_nothing(root: Client, desk: str, action: str, pk: str) -> None:
    answer: Any = root.post(desk, {"action": action, "_selected_action": pk}, follow=True)
    assert "Nothing was changed: what was selected does not exist." in text(answer)


@pytest.mark.parametrize("desk", [APPS, ACCESS, KEYS])
@pytest.mark.parametrize("pk", ODD_IDS)
def test_a_page_of_nothing_is_not_there(root: Client, desk: str, pk: str) -> None:
    assert root.get(f"{desk}{pk}/change/").headers["Location"] == "/admin/"


@pytest.mark.parametrize("desk", [APPS, ACCESS, KEYS])
def test_a_longer_list_takes_no_more_queries(root: Client, desk: str) -> None:
    counts = []
    for number in range(2):
        reader = oauth_flows.reader(f"reader-{number}")
        app = oauth_flows.confidential_app(f"app-{number}", user=reader)
        Authorization.objects.create(user=reader, application=app, scopes="read", created_at=timezone.now())
        key_of(reader)
        with CaptureQueriesContext(connection) as queries:
            root.get(desk)
        counts.append(len(queries))
    assert counts[0] == counts[1]

"""Operators create apps and API keys on the command line."""

from datetime import timedelta
from typing import Any, NamedTuple

import httpx
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from oauth2_provider.models import Application

from oauth.models import APIKey
from tests.support import oauth_flows

pytestmark = pytest.mark.usefixtures("no_apps")

APP_OPTIONS = ["--name", "Bookshop", "--redirect-uri", oauth_flows.CALLBACK]


class Output(NamedTuple):
    out: str
    err: str


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Any:
    """A function that runs a command and returns its output."""

    def run(*arguments: str) -> Output:
        capsys.readouterr()
        call_command(*arguments)
        return Output(*capsys.readouterr())

    return run


def test_an_operator_registers_an_app(command: Any, api: httpx.Client) -> None:
    output = command("create_oauth_app", *APP_OPTIONS, "--scopes", "write read")
    values = dict(line.split(": ") for line in output.out.splitlines())
    app = Application.objects.get(client_id=values["client_id"])
    code = oauth_flows.obtain_code(api, oauth_flows.create_librarian(), app)
    form = oauth_flows.build_code_request(app, code, client_secret=values["client_secret"])
    assert api.post("/oauth/token", data=form).json()["scope"] == "read write"
    assert (app.name, app.client_type, app.user) == ("Bookshop", "confidential", None)
    assert len(values["client_secret"]) == 128
    assert app.client_secret.startswith("generated_secret$")
    assert values["client_secret"] not in f"{output.err} {Application.objects.values().get()}"


def test_a_public_app_gets_no_secret(command: Any, api: httpx.Client) -> None:
    """It may read unless scopes are named, and it can have an owner."""
    owner = oauth_flows.create_reader("ada")
    uris = ["--redirect-uri", "http://127.0.0.1/callback", "--redirect-uri", "http://[::1]/callback"]
    output = command("create_oauth_app", "--name", "Shelf", *uris, "--public", "--owner", "ada")
    app = Application.objects.get()
    assert (output, app.client_secret) == ((f"client_id: {app.client_id}\n", ""), "")
    assert oauth_flows.obtain_tokens(api, owner, app)["scope"] == "read"
    assert app.redirect_uris.split() == ["http://127.0.0.1/callback", "http://[::1]/callback"]
    assert (app.user, app.allowance.scopes) == (owner, "read")


def test_invalid_options_create_no_app() -> None:
    User.objects.create_user("gone", is_active=False)
    for arguments, problem in (
        (["--name", "Bookshop"], "--redirect-uri"),
        (["--redirect-uri", oauth_flows.CALLBACK], "--name"),
        (["--name", " ", "--redirect-uri", oauth_flows.CALLBACK], "A name takes"),
        (["--name", "Bookshop", "--redirect-uri", "http://app.example/"], "http://app.example/"),
        ([*APP_OPTIONS, "--scopes", ""], "at least one scope"),
        ([*APP_OPTIONS, "--scopes", "read admin"], "There is no scope 'admin'; there are read, write, webhooks."),
        ([*APP_OPTIONS, "--owner", "nobody"], "There is no user 'nobody'."),
        ([*APP_OPTIONS, "--owner", "gone"], "The user 'gone' is not active."),
    ):
        with pytest.raises(CommandError, match=problem):
            call_command("create_oauth_app", *arguments)
    assert not Application.objects.exists()


def test_the_last_line_is_an_api_key(command: Any, api: httpx.Client) -> None:
    oauth_flows.create_librarian("astrid")
    output = command("create_api_key", "--user", "astrid", "--scopes", "write read", "--name", "Night import")
    key = output.out.splitlines()[-1]
    assert api.get("/api/books", headers={"X-API-Key": key}).status_code == 200
    stored = APIKey.objects.get()
    assert (stored.name, stored.scopes, stored.expires_at) == ("Night import", "read write", None)
    assert key not in output.err
    assert "may not" not in output.err
    assert key not in str(APIKey.objects.values().get())


def test_a_key_can_expire(command: Any) -> None:
    oauth_flows.create_reader("ada")
    command("create_api_key", "--user", "ada", "--scopes", "read", "--expires-in-days", "30")
    stored = APIKey.objects.get()
    assert stored.expires_at == stored.created_at + timedelta(days=30)


def test_a_scope_that_its_owner_may_not_have_gives_a_warning(command: Any) -> None:
    oauth_flows.create_reader("ada")
    output = command("create_api_key", "--user", "ada", "--scopes", "read write")
    assert "ada may not have these scopes now, and the key is not good for them: write." in output.err
    assert APIKey.objects.get().scopes == "read write"


def test_invalid_options_create_no_key() -> None:
    oauth_flows.create_reader("ada")
    User.objects.create_user("gone", is_active=False)
    for arguments, problem in (
        (["--scopes", "read"], "--user"),
        (["--user", "ada"], "--scopes"),
        (["--user", "nobody", "--scopes", "read"], "There is no user 'nobody'."),
        (["--user", "gone", "--scopes", "read"], "The user 'gone' is not active."),
        (["--user", "ada", "--scopes", "read admin"], "There is no scope 'admin'"),
        (["--user", "ada", "--scopes", " "], "at least one scope"),
        (["--user", "ada", "--scopes", "read", "--name", ""], "A name takes"),
        (["--user", "ada", "--scopes", "read", "--name", "n" * 101], "A name takes"),
        (["--user", "ada", "--scopes", "read", "--expires-in-days", "0"], "takes 1 to"),
        (["--user", "ada", "--scopes", "read", "--expires-in-days", "9999999999"], "takes 1 to"),
        (["--user", "ada", "--scopes", "read", "--expires-in-days", "soon"], "invalid int"),
    ):
        with pytest.raises(CommandError, match=problem):
            call_command("create_api_key", *arguments)
    assert not APIKey.objects.exists()

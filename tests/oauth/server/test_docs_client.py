"""The documentation as an app of the library; `test_browser` authorizes with it."""

from typing import Any

import httpx
from django.conf import LazySettings
from django.core.management import call_command
from django.db.migrations.state import ProjectState
from oauth2_provider.models import Application

from oauth.server import docs_client


def stored_client() -> dict[str, Any]:
    found = Application.objects.select_related("allowance").get(client_id="library-docs")
    return {
        "name": found.name,
        "type": found.client_type,
        "redirect_uris": found.redirect_uris,
        "scopes": found.allowance.scopes,
        "skips consent": found.skip_authorization,
    }


def test_the_documentation_is_an_app(db: None, settings: LazySettings) -> None:
    assert stored_client() == {
        "name": "Library documentation",
        "type": "public",
        "redirect_uris": f"{settings.PUBLIC_URL}/docs/oauth2-redirect.html",
        "scopes": "read write webhooks",
        "skips consent": False,
    }


def test_the_documentations_app_follows_the_library_when_it_moves(db: None, settings: LazySettings) -> None:
    moved = {"deepLinking": True, "oauth2RedirectUrl": "https://library.example/docs/oauth2-redirect.html"}
    settings.SPECTACULAR_SETTINGS = {**settings.SPECTACULAR_SETTINGS, "SWAGGER_UI_SETTINGS": moved}
    call_command("migrate", verbosity=0)
    call_command("migrate", "books", verbosity=0)
    assert stored_client()["redirect_uris"] == "https://library.example/docs/oauth2-redirect.html"


def test_the_documentations_app_waits_for_its_tables(db: None) -> None:
    Application.objects.all().delete()
    docs_client.sync_docs_client(apps=ProjectState().apps)
    assert not Application.objects.exists()


def test_the_documentation_tells_where_authorizing_works(api: httpx.Client, settings: LazySettings) -> None:
    home = f"{settings.PUBLIC_URL}/docs/v2"
    assert f'to authorize, open <a class="link" href="{home}">' in api.get("http://localhost/docs/v2").text
    assert "to authorize" not in api.get(home).text


def test_what_authorizing_answers_reaches_the_page_that_reads_it(api: httpx.Client) -> None:
    answer = api.get("/docs/oauth2-redirect.html?code=one&state=two")
    page = answer.headers["Location"]
    assert (answer.status_code, httpx.URL(page).query) == (302, b"code=one&state=two")
    assert '<script src="oauth2-redirect.js">' in api.get(page).text

"""The app of the documentation pages, with which a user can authorize there."""

from typing import Any

import httpx
from django.conf import LazySettings
from django.core.management import call_command
from django.db.migrations.state import ProjectState
from oauth2_provider.models import Application

from oauth.server import docs_client


def read_docs_client() -> dict[str, Any]:
    application = Application.objects.select_related("allowance").get(client_id="library-docs")
    return {
        "name": application.name,
        "type": application.client_type,
        "redirect_uris": application.redirect_uris,
        "scopes": application.allowance.scopes,
        "skips consent": application.skip_authorization,
    }


def test_the_documentation_is_an_app(db: None, settings: LazySettings) -> None:
    assert read_docs_client() == {
        "name": "Library documentation",
        "type": "public",
        "redirect_uris": f"{settings.PUBLIC_URL}/docs/oauth2-redirect.html",
        "scopes": "read write webhooks",
        "skips consent": False,
    }


def test_the_redirect_uri_of_the_documentation_follows_the_settings(
    transactional_db: None, settings: LazySettings
) -> None:
    swagger_settings = {"deepLinking": True, "oauth2RedirectUrl": "https://library.example/docs/oauth2-redirect.html"}
    settings.SPECTACULAR_SETTINGS = {**settings.SPECTACULAR_SETTINGS, "SWAGGER_UI_SETTINGS": swagger_settings}
    call_command("migrate", verbosity=0)
    call_command("migrate", "books", verbosity=0)
    assert read_docs_client()["redirect_uris"] == "https://library.example/docs/oauth2-redirect.html"


def test_the_app_of_the_documentation_is_not_created_before_its_tables(db: None) -> None:
    Application.objects.all().delete()
    docs_client.sync_docs_client(apps=ProjectState().apps)
    assert not Application.objects.exists()


def test_the_documentation_says_at_which_address_a_user_can_authorize(
    api: httpx.Client, settings: LazySettings
) -> None:
    docs_url = f"{settings.PUBLIC_URL}/docs/v2"
    assert f'To authorize, open <a href="{docs_url}">' in api.get("http://localhost/docs/v2").text
    assert "To authorize" not in api.get(docs_url).text


def test_the_redirect_page_passes_the_query_on(api: httpx.Client) -> None:
    response = api.get("/docs/oauth2-redirect.html?code=one&state=two")
    page = response.headers["Location"]
    assert (response.status_code, httpx.URL(page).query) == (302, b"code=one&state=two")
    assert '<script src="oauth2-redirect.js">' in api.get(page).text

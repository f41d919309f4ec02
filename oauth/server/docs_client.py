"""Registers the documentation as an app: the public client for the Authorize button of /docs."""

from typing import Any

from django.apps import apps as current_apps
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, router

from oauth import scopes

DOCS_CLIENT_NAME = "Library documentation"


def sync_docs_client(apps: Any = current_apps, using: str = DEFAULT_DB_ALIAS, **others: Any) -> None:
    """A receiver of post_migrate: updates the app from the settings, such as PUBLIC_URL."""
    if not router.allow_migrate(using, "oauth", model_name="allowance"):
        # A database of an app beside the library.
        return
    try:
        allowances = apps.get_model("oauth", "Allowance").objects.using(using)
    except LookupError:
        # The table does not exist yet, or does not exist any more.
        return
    documentation: Any = settings.SPECTACULAR_SETTINGS
    application, _ = (
        apps.get_model("oauth2_provider", "Application")
        .objects.using(using)
        .update_or_create(
            client_id=documentation["SWAGGER_UI_OAUTH2_CONFIG"]["clientId"],
            defaults={
                "name": DOCS_CLIENT_NAME,
                "client_type": "public",
                "authorization_grant_type": "authorization-code",
                "redirect_uris": documentation["SWAGGER_UI_SETTINGS"]["oauth2RedirectUrl"],
            },
        )
    )
    allowances.update_or_create(application=application, defaults={"scopes": scopes.format_scopes(scopes.SCOPES)})

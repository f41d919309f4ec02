"""Django's configuration of this app, and of the OAuth toolkit."""

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _
from oauth2_provider.apps import DOTConfig


class ToolkitConfig(DOTConfig):
    """The toolkit, with a name that librarians understand."""

    verbose_name = _("Apps and keys")  # type: ignore[assignment]  # the toolkit's is a plain text


class OAuthConfig(AppConfig):
    default = True
    name = "oauth"
    verbose_name = _("Apps and keys")

    def ready(self) -> None:
        # Importing these modules connects receivers and registers checks.
        from oauth import checks, signals  # noqa: F401
        from oauth.accounts import languages  # noqa: F401
        from oauth.server import docs_client

        # Django's users and groups, with a name that librarians understand.
        apps.get_app_config("auth").verbose_name = _("People")
        post_migrate.connect(docs_client.sync_docs_client, sender=self)

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class WebhooksConfig(AppConfig):
    name = "webhooks"
    verbose_name = _("Webhooks")

    def ready(self) -> None:
        from oauth.accounts.roles import register_sentence
        from webhooks import checks  # noqa: F401  # the import registers them

        actions = ("add", "change", "delete", "view")
        register_sentence(
            _("Make webhooks, change and delete them"), *(f"webhooks.{name}_endpoint" for name in actions)
        )
        deliveries = ("change_delivery", "view_delivery", "view_attempt", "view_event")
        register_sentence(
            _("See events and deliveries, and send them again"), *(f"webhooks.{name}" for name in deliveries)
        )
        register_sentence(_("See the services that send events here"), "webhooks.view_source")

"""Django's configuration of this app."""

from django.apps import AppConfig
from django.conf import settings


class LibrarySiteConfig(AppConfig):
    name = "library_site"

    def ready(self) -> None:
        # Importing these modules registers checks and receivers.
        from library_site import checks  # noqa: F401
        from library_site.db import checks as database_checks  # noqa: F401
        from library_site.db import connections  # noqa: F401

        if settings.SENTRY_DSN:
            from library_site.monitoring.error_reports import start_error_reports

            start_error_reports(settings.SENTRY_DSN)

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin import apps as admin
from django.contrib.staticfiles import apps as staticfiles


class StaticFilesConfig(staticfiles.StaticFilesConfig):
    """Serves no source maps and no ReDoc, because no page needs them. They are large, and a client that stops reading
    one blocks a thread of the server.
    """

    # This package has its own configuration.
    default = False
    ignore_patterns = [*staticfiles.StaticFilesConfig.ignore_patterns, "*.map", "redoc"]


class LibraryAdminConfig(admin.AdminConfig):
    default = False
    default_site = "library_site.admin.site.LibraryAdminSite"


class LibrarySiteConfig(AppConfig):
    name = "library_site"

    def ready(self) -> None:
        # Importing these modules registers checks and receivers.
        from library_site.db import checks as database_checks  # noqa: F401
        from library_site.db.postgresql import lost_connections  # noqa: F401
        from library_site.deployment import checks  # noqa: F401

        if settings.SENTRY_DSN:
            from library_site.deployment.releases import VERSION
            from library_site.monitoring.error_reports import start_error_reports

            start_error_reports(settings.SENTRY_DSN, release=f"library-api@{VERSION}")

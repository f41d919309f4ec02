"""Django's configuration of the admin. It imports no models, because Django imports it before it loads them."""

from typing import Any

from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core import checks
from django.utils.module_loading import autodiscover_modules


class LibraryAdminConfig(SimpleAdminConfig):
    """Unlike Django's, does not import the admin pages: workers and most commands start faster without them."""

    default_site = "library_site.admin.site.LibraryAdminSite"

    def ready(self) -> None:
        checks.register(check_dependencies, checks.Tags.admin)
        checks.register(check_pages, checks.Tags.admin)


def register_pages() -> None:
    """Imports `admin` of other apps and `admin.pages` of ours, whose other `admin` modules have no side effects."""
    from django.contrib import admin

    autodiscover_modules("admin", "admin.pages", register_to=admin.site)


def check_pages(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    register_pages()
    return check_admin_app(app_configs, **options)

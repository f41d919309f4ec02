"""Django's configuration of the admin. It imports no models, because Django imports it before it loads them."""

from django.contrib.admin.apps import AdminConfig


class LibraryAdminConfig(AdminConfig):
    default_site = "library_site.admin.site.LibraryAdminSite"

"""The admin site."""

from collections.abc import Iterable

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _


class LibraryAdminSite(AdminSite):
    # The link to the site leads to pages for people; `/` is for programs.
    site_url = None
    # The bar in `templates/bar.html` links to all models.
    enable_nav_sidebar = False
    index_title = _("Library")


def has_any_permission(request: HttpRequest, permissions: Iterable[str]) -> bool:
    return any(request.user.has_perm(permission) for permission in permissions)

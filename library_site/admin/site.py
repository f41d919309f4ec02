"""The admin site."""

from collections.abc import Iterable
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.contenttypes.models import ContentType
from django.contrib.contenttypes.views import shortcut
from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import path
from django.utils.translation import gettext_lazy as _


class LibraryAdminSite(AdminSite):
    # The link to the site leads to pages for people; `/` is for programs.
    site_url = None
    # The bar in `templates/bar.html` links to all models.
    enable_nav_sidebar = False
    site_header = site_title = index_title = _("Library")
    index_template = "admin/first_page.html"

    def get_urls(self) -> list[Any]:
        route = "r/<int:content_type_id>/<path:object_id>/"
        return [path(route, self.admin_view(self.show_on_site), name="view_on_site"), *super().get_urls()]

    def show_on_site(self, request: HttpRequest, content_type_id: int, object_id: str) -> HttpResponseBase:
        """Redirects to the public page of a row. Django's view fails for some ids, so the row is found as by its form.

        The tables of the library have no such pages.
        """
        content_type = ContentType.objects.filter(pk=content_type_id).first()
        model = content_type.model_class() if content_type else None
        model_admin = self.get_model_admin(model) if model and self.is_registered(model) else None
        if not (model_admin and model_admin.view_on_site and model_admin.get_object(request, object_id)):
            raise Http404
        return shortcut(request, content_type_id, object_id)


def has_any_permission(request: HttpRequest, permissions: Iterable[str]) -> bool:
    return any(request.user.has_perm(permission) for permission in permissions)

"""The admin site."""

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest


class LibraryAdminSite(AdminSite):
    # The pages link to what people can use; `/` is for programs.
    site_url = None

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Leaves out the sidebar for people who see one model: it would only repeat the page."""
        context = super().each_context(request)
        model_count = sum(len(app["models"]) for app in context["available_apps"])
        return {**context, "is_nav_sidebar_enabled": context["is_nav_sidebar_enabled"] and model_count > 1}

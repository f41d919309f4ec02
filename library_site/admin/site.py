"""The admin site."""

from django.contrib.admin import AdminSite
from django.utils.translation import gettext_lazy as _


class LibraryAdminSite(AdminSite):
    # The pages link to what people can use; `/` is for programs.
    site_url = None
    # The bar of `templates/bar.html` leads to all models.
    enable_nav_sidebar = False
    index_title = _("Library")

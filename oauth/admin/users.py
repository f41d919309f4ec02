"""The admin pages of users and groups: Django's own, with the checks of ValidatingAdmin."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest

from library_site.admin.model_admins import ValidatingAdmin

admin.site.unregister([User, Group])


@admin.register(User)
class LibraryUserAdmin(ValidatingAdmin, UserAdmin):
    allowed_lookups = ("is_staff__exact", "is_superuser__exact", "is_active__exact", "groups__id__exact")

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Lists the people. Django would list every token, and require permissions to delete each."""
        lines = [f"{user}, with the apps and API keys that are theirs" for user in objs]
        return lines, {str(self.opts.verbose_name_plural): len(lines)}, set(), []


@admin.register(Group)
class LibraryGroupAdmin(ValidatingAdmin, GroupAdmin):
    """The page has no filters, so no lookups are allowed."""

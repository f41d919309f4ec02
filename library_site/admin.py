"""Users and groups as Django has them, with the guards of the librarians' desk."""

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User

from books.admin import GuardedAdmin

admin.site.unregister([User, Group])


@admin.register(User)
class GuardedUserAdmin(GuardedAdmin, UserAdmin):
    lookups = ("is_staff__exact", "is_superuser__exact", "is_active__exact", "groups__id__exact")


@admin.register(Group)
class GuardedGroupAdmin(GuardedAdmin, GroupAdmin):
    """Has no filters."""

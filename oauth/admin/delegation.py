"""Which rights people may give to others: only those that they have themselves.

Django lets everybody who may change users make superusers, and choose the password of one.
"""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.db.models import ManyToManyField, QuerySet
from django.forms import CheckboxSelectMultiple, ModelMultipleChoiceField
from django.http import HttpRequest

from library_site.admin.model_admins import ValidatingAdmin
from oauth.accounts.roles import list_permissions
from oauth.admin.forms import PermissionsField, RowsField


class DelegatingAdmin(ValidatingAdmin):
    """Nobody changes or deletes users and groups that have more rights than they have, or gives such rights."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and may_manage(request.user, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and may_manage(request.user, obj)

    def find_missing(self, request: HttpRequest, objs: Iterable[Any]) -> set[str]:
        """Returns the name of the table if some of these rows have more rights than who wants to delete them."""
        pks = [obj.pk for obj in objs]
        is_allowed = list_manageable(self.model, request.user).filter(pk__in=pks).count() == len(pks)
        return set() if is_allowed else {str(self.opts.verbose_name)}

    def formfield_for_manytomany(
        self, db_field: "ManyToManyField[Any, Any]", request: Any = None, **options: Any
    ) -> ModelMultipleChoiceField | None:
        options |= {
            "queryset": list_manageable(db_field.related_model, request.user),
            "form_class": PermissionsField if db_field.related_model is Permission else RowsField,
            # Django's two lists have no names that a screen reader says, and are wider than a telephone.
            "widget": CheckboxSelectMultiple,
        }
        return super().formfield_for_manytomany(db_field, request, **options)


def may_manage(manager: Any, obj: Any) -> bool:
    """Whether this user or group has no more rights than the manager; the list of all, without one, has none."""
    return obj is None or list_manageable(type(obj), manager).filter(pk=obj.pk).exists()


def list_manageable(model: Any, manager: Any) -> QuerySet[Any]:
    """Returns the users, groups or permissions that include no right which the manager has not."""
    if manager.is_superuser:
        rows: QuerySet[Any] = model._default_manager.all()
        return rows
    held = list_permissions(manager)
    missing = Permission.objects.exclude(pk__in=held)
    users = User.objects.exclude(is_superuser=True).exclude(user_permissions__in=missing)
    return {
        Permission: held,
        Group: Group.objects.exclude(permissions__in=missing),
        User: users.exclude(groups__permissions__in=missing),
    }[model]

"""Users may grant only the permissions that they have themselves.

In Django, everyone who may change users can make a superuser, or set a superuser's password.
"""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.db.models import ManyToManyField, QuerySet
from django.forms import CheckboxSelectMultiple, ModelMultipleChoiceField
from django.http import HttpRequest

from library_site.admin.model_admins import DescribedDeletionMixin, ValidatingAdmin
from oauth.accounts.roles import list_permissions
from oauth.admin.forms import MAY_LABEL, PermissionsWidget, RolesField, RowsField

# How the form shows the groups of a user, and the permissions of a user or group.
FIELD_OPTIONS: dict[Any, dict[str, Any]] = {
    Group: {"form_class": RolesField, "widget": CheckboxSelectMultiple},
    Permission: {"form_class": RowsField, "widget": PermissionsWidget, "label": MAY_LABEL},
}


class DelegatingAdmin(DescribedDeletionMixin, ValidatingAdmin):
    """A user cannot change or delete users and groups that have more permissions, or grant more than their own."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and may_manage(request.user, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and may_manage(request.user, obj)

    def find_missing(self, request: HttpRequest, objs: Iterable[Any]) -> set[str]:
        """Returns the name of the model if some of these rows have more permissions than the user who deletes them."""
        pks = [obj.pk for obj in objs]
        is_allowed = list_manageable(self.model, request.user).filter(pk__in=pks).count() == len(pks)
        return set() if is_allowed else {str(self.opts.verbose_name)}

    def formfield_for_manytomany(
        self, db_field: "ManyToManyField[Any, Any]", request: Any = None, **options: Any
    ) -> ModelMultipleChoiceField | None:
        # Django's two lists have no accessible names, and do not fit on a phone.
        options |= {
            "queryset": list_manageable(db_field.related_model, request.user),
            **FIELD_OPTIONS[db_field.related_model],
        }
        return super().formfield_for_manytomany(db_field, request, **options)


def may_manage(manager: Any, obj: Any) -> bool:
    """Whether this user or group has no more permissions than the manager; true for the list, where `obj` is None."""
    return obj is None or list_manageable(type(obj), manager).filter(pk=obj.pk).exists()


def list_manageable(model: Any, manager: Any) -> QuerySet[Any]:
    """Returns the users, groups or permissions without any permission that the manager lacks."""
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

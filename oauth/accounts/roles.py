"""Describes permissions in sentences, which each app registers for its own permissions."""

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Prefetch, Q, QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

# Each sentence with the permissions that it needs, such as `books.add_book`.
ROLE_SENTENCES: dict[Any, frozenset[str]] = {}


# The permissions that Django creates for each model.
ACTION_NAMES = {
    "add": _("Can add %(name)s"),
    "change": _("Can change %(name)s"),
    "delete": _("Can delete %(name)s"),
    "view": _("Can view %(name)s"),
}


def register_sentence(sentence: Any, *permissions: str) -> None:
    ROLE_SENTENCES[sentence] = frozenset(permissions)


register_sentence(
    _("Register apps, change and delete them"),
    *(f"oauth2_provider.{action}_application" for action in ("add", "change", "delete", "view")),
)
register_sentence(_("Make and revoke API keys"), *(f"oauth.{action}_apikey" for action in ("add", "change", "view")))
register_sentence(_("End the access of apps"), *(f"oauth.{action}_authorization" for action in ("change", "view")))
register_sentence(
    _("Invite people, and change and remove their accounts"),
    *(f"auth.{action}_user" for action in ("add", "change", "delete", "view")),
)


# For querysets of groups that are described.
GROUP_PERMISSIONS = Prefetch("permissions", Permission.objects.select_related("content_type"))


def get_group_name(codenames: Iterable[str]) -> str:
    """Returns the name of the app whose models these permissions are about."""
    return str(apps.get_app_config(min(codenames).partition(".")[0]).verbose_name)


def describe_group(group: Group) -> list[str]:
    return describe_permissions(group.permissions.all())


def describe_user(user: User) -> list[str]:
    if user.is_superuser:
        return [gettext("Everything")]
    sentences = describe_permissions(list_permissions(user)) if user.is_staff else []
    return sentences or [gettext("Read the library's books, and let apps read them")]


def list_permissions(user: User) -> QuerySet[Permission]:
    """Returns the permissions of the user and of the user's groups; a superuser needs none."""
    permissions = Permission.objects.select_related("content_type")
    return permissions.filter(Q(user=user) | Q(group__user=user)).distinct()


def describe_permissions(permissions: Iterable[Permission]) -> list[str]:
    """Returns the sentences whose permissions are all granted, and Django's name of each remaining permission."""
    names = {get_full_codename(permission): describe_permission(permission) for permission in permissions}
    sentences = [(str(sentence), needed) for sentence, needed in ROLE_SENTENCES.items() if needed <= names.keys()]
    described = frozenset().union(*(needed for _, needed in sentences))
    return [*(sentence for sentence, _ in sentences), *(names[name] for name in sorted(names.keys() - described))]


def get_full_codename(permission: Permission) -> str:
    return f"{permission.content_type.app_label}.{permission.codename}"


def describe_permission(permission: Permission) -> str:
    """Translates Django's name of a permission, which is stored in English."""
    action, _separator, model = permission.codename.partition("_")
    if action not in ACTION_NAMES or model != permission.content_type.model:
        return gettext(permission.name)
    return str(ACTION_NAMES[action]) % {"name": permission.content_type.name}

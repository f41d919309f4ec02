"""The scopes of credentials, and which users may have them (specification, Section 5)."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import ValidationError
from django.db.models import Exists, OuterRef, Q, QuerySet
from oauth2_provider.scopes import BaseScopes


class Scope(NamedTuple):
    """`sentence` describes it to people; `permission` is what a user needs, None if every active user has it."""

    sentence: Any
    permission: str | None


SCOPES = {name: Scope(*description) for name, description in settings.OAUTH_SCOPES.items()}
DEFAULT_SCOPE = "read"

ScopeSet = frozenset[str]
NO_SCOPES: ScopeSet = frozenset()
ALL_SCOPES: ScopeSet = frozenset(SCOPES)


class ScopesBackend(BaseScopes):
    """The toolkit's SCOPES_BACKEND_CLASS: apps may request every scope, and `limit_to_allowance` removes some."""

    def get_all_scopes(self) -> dict[str, Any]:
        return {name: scope.sentence for name, scope in SCOPES.items()}

    def get_available_scopes(self, *arguments: Any, **options: Any) -> list[str]:
        return list(SCOPES)

    def get_default_scopes(self, *arguments: Any, **options: Any) -> list[str]:
        return [DEFAULT_SCOPE]


def parse_scopes(text: str) -> ScopeSet:
    """Parses a space-separated text. Raises ValidationError."""
    names = frozenset(text.split())
    if unknown_names := sorted(names - SCOPES.keys()):
        raise ValidationError(f"There is no scope {unknown_names[0]!r}; there are {', '.join(SCOPES)}.")
    return names


def format_scopes(scopes: Iterable[str]) -> str:
    """Returns a space-separated text, in the order of SCOPES."""
    return " ".join(name for name in SCOPES if name in set(scopes))


def describe_scopes(scopes: Iterable[str]) -> list[Any]:
    return [SCOPES[name].sentence for name in format_scopes(scopes).split()]


def format_scope_sentences(text: str) -> str:
    """Returns the sentences of a space-separated text as one text."""
    return "; ".join(str(sentence) for sentence in describe_scopes(text.split()))


def get_allowed_scopes(users: QuerySet[User]) -> dict[int, ScopeSet]:
    """Returns the scopes that each user may have, by id, in one query. Inactive users have none."""
    rows = users.values("pk", "is_active", **build_permission_columns(ALL_SCOPES))
    return {row["pk"]: select_allowed(ALL_SCOPES, row) if row["is_active"] else NO_SCOPES for row in rows}


def get_user_scopes(user: User) -> ScopeSet:
    return get_allowed_scopes(User.objects.filter(pk=user.pk)).get(user.pk, NO_SCOPES)


def list_scope_groups(scope: str) -> list[str]:
    """Returns the names of the groups whose members may have the scope; none for a scope that needs no permission."""
    app, _separator, codename = (SCOPES[scope].permission or "").partition(".")
    groups = Group.objects.filter(permissions__content_type__app_label=app, permissions__codename=codename)
    return [*groups.order_by("name").values_list("name", flat=True)]


def build_permission_columns(scopes: ScopeSet) -> dict[str, Q]:
    """Returns a column for each of these scopes that needs a permission: whether a user has it."""
    permissions = ((name, SCOPES[name].permission) for name in scopes)
    return {f"may_{name}": build_permission_condition(permission) for name, permission in permissions if permission}


def select_allowed(scopes: ScopeSet, row: Mapping[str, Any]) -> ScopeSet:
    """Returns the scopes that the active user of this row may have; the row has their permission columns."""
    return frozenset(name for name in scopes if SCOPES[name].permission is None or row[f"may_{name}"])


def build_permission_condition(permission: str) -> Q:
    """The condition of Django's ModelBackend: superusers, and users with the permission or a group that has it."""
    app, codename = permission.split(".")
    permissions = Permission.objects.filter(content_type__app_label=app, codename=codename)
    user_permissions = permissions.filter(user=OuterRef("pk"))
    group_permissions = permissions.filter(group__user=OuterRef("pk"))
    return Q(is_superuser=True) | Q(Exists(user_permissions)) | Q(Exists(group_permissions))

"""The scopes of credentials, and which users may have them (specification, Section 5)."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.contrib.auth.models import Group, Permission, User
from django.db.models import Case, Exists, Func, IntegerField, OuterRef, Q, QuerySet, Subquery, When
from django.utils.translation import gettext_lazy as _
from oauth2_provider.scopes import BaseScopes


class Scope(NamedTuple):
    """`sentence` describes it to people; `permission` is what a user needs, None if every active user has it."""

    sentence: Any
    permission: str | None


SCOPES = {
    "read": Scope(_("Read the library's books"), None),
    "write": Scope(_("Add, change and delete books"), "books.change_book"),
    "webhooks": Scope(_("Manage webhooks and read events"), "webhooks.change_endpoint"),
}
DEFAULT_SCOPE = "read"

# Of the scopes that need a permission: its app and codename, and the bit in the column `rights`.
PERMISSIONS = {name: scope.permission.split(".") for name, scope in SCOPES.items() if scope.permission}
SCOPE_BITS = {name: 1 << index for index, name in enumerate(PERMISSIONS)}
RIGHTS_COLUMNS = ("is_active", "is_superuser", "rights")

ScopeSet = frozenset[str]
NO_SCOPES: ScopeSet = frozenset()
ALL_SCOPES: ScopeSet = frozenset(SCOPES)


class UnknownScope(Exception):
    """A text names a scope that does not exist."""


class ScopesBackend(BaseScopes):
    """The toolkit's SCOPES_BACKEND_CLASS: apps may request every scope; `limit_to_allowance` decides."""

    def get_all_scopes(self) -> dict[str, Any]:
        return {name: scope.sentence for name, scope in SCOPES.items()}

    def get_available_scopes(self, *arguments: Any, **options: Any) -> list[str]:
        return list(SCOPES)

    def get_default_scopes(self, *arguments: Any, **options: Any) -> list[str]:
        return [DEFAULT_SCOPE]


def parse_scopes(text: str) -> ScopeSet:
    """Returns the scopes of a space-separated text. Raises UnknownScope."""
    names = frozenset(text.split())
    if unknown_names := sorted(names - SCOPES.keys()):
        raise UnknownScope(f"There is no scope {unknown_names[0]!r}; there are {', '.join(SCOPES)}.")
    return names


def format_scopes(scopes: Iterable[str]) -> str:
    """Returns a space-separated text, in the order of SCOPES."""
    return " ".join(name for name in SCOPES if name in set(scopes))


def describe_scopes(scopes: Iterable[str]) -> list[Any]:
    """Returns a sentence for each scope."""
    return [SCOPES[name].sentence for name in format_scopes(scopes).split()]


def get_allowed_scopes(users: QuerySet[User]) -> dict[int, ScopeSet]:
    """Returns the scopes that each user may have, by id, in one query. Inactive users have none."""
    return {row["pk"]: read_scopes(row) for row in annotate_rights(users).values("pk", *RIGHTS_COLUMNS)}


def get_user_scopes(user: User) -> ScopeSet:
    """Returns the scopes that a user may have, read from the database."""
    return get_allowed_scopes(User.objects.filter(pk=user.pk)).get(user.pk, NO_SCOPES)


def annotate_rights(users: QuerySet[User]) -> QuerySet[User]:
    """Adds the column `rights`: the sum of the bits of the scopes whose permission a user has, also by a group."""
    user = OuterRef(OuterRef("pk"))
    own_permissions = User.user_permissions.through.objects.filter(user=user)
    group_permissions = Group.permissions.through.objects.filter(group__user=user)
    bits = [
        When(codename=codename, content_type__app_label=app, then=SCOPE_BITS[name])
        for name, (app, codename) in PERMISSIONS.items()
    ]
    held_permissions = Permission.objects.filter(
        Q(pk__in=own_permissions.values("permission")) | Q(pk__in=group_permissions.values("permission")),
        # So the database need not look at all the others.
        codename__in=[codename for _, codename in PERMISSIONS.values()],
    )
    # An aggregate of Django's would add a GROUP BY.
    total = Func(Case(*bits, default=0), function="SUM", output_field=IntegerField())
    return users.annotate(rights=Subquery(held_permissions.order_by().annotate(total=total).values("total")))


def read_scopes(row: dict[str, Any]) -> ScopeSet:
    """Returns the scopes of a user in a row with RIGHTS_COLUMNS."""
    if not row["is_active"]:
        return NO_SCOPES
    if row["is_superuser"]:
        return ALL_SCOPES
    rights = row["rights"] or 0
    return ALL_SCOPES - {name for name, bit in SCOPE_BITS.items() if not rights & bit}


def build_permission_condition(permission: str) -> Q:
    """A condition for users, as in Django's ModelBackend: superusers, and who has the permission or a group with it."""
    app, codename = permission.split(".")
    permissions = Permission.objects.filter(content_type__app_label=app, codename=codename)
    user_permissions = permissions.filter(user=OuterRef("pk"))
    group_permissions = permissions.filter(group__user=OuterRef("pk"))
    return Q(is_superuser=True) | Q(Exists(user_permissions)) | Q(Exists(group_permissions))

"""What a credential may be for, and who may have it (specification, Section 5)."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.contrib.auth.models import Permission, User
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext_lazy as _
from oauth2_provider.scopes import BaseScopes


class Scope(NamedTuple):
    """`sentence` is for people; `permission` is what a user needs for it, nothing where every active user may."""

    sentence: Any
    permission: str | None


SCOPES = {
    "read": Scope(_("Read the library's books"), None),
    "write": Scope(_("Add, change and delete books"), "books.change_book"),
    "webhooks": Scope(_("Manage webhooks and read events"), "webhooks.change_endpoint"),
}
DEFAULT_SCOPE = "read"

ScopeSet = frozenset[str]
NO_SCOPES: ScopeSet = frozenset()


class UnknownScope(Exception):
    """A scope that there is not."""


class ScopesBackend(BaseScopes):
    """The toolkit's SCOPES_BACKEND_CLASS: known scopes may be asked for; `grantable` decides what comes of it."""

    def get_all_scopes(self) -> dict[str, Any]:
        return {name: scope.sentence for name, scope in SCOPES.items()}

    def get_available_scopes(self, *arguments: Any, **options: Any) -> list[str]:
        return list(SCOPES)

    def get_default_scopes(self, *arguments: Any, **options: Any) -> list[str]:
        return [DEFAULT_SCOPE]


def parse_scopes(text: str) -> ScopeSet:
    """The scopes of a space-separated text. Raises UnknownScope."""
    names = frozenset(text.split())
    if strange := sorted(names - SCOPES.keys()):
        raise UnknownScope(f"There is no scope {strange[0]!r}; there are {', '.join(SCOPES)}.")
    return names


def format_scopes(scopes: Iterable[str]) -> str:
    """Space-separated, in the order of SCOPES."""
    return " ".join(name for name in SCOPES if name in set(scopes))


def describe_scopes(scopes: Iterable[str]) -> list[Any]:
    """What they let someone do."""
    return [SCOPES[name].sentence for name in format_scopes(scopes).split()]


def get_allowed_scopes(users: QuerySet[User]) -> dict[int, ScopeSet]:
    """What each of these users may have, by id, in one query; nothing for those who are not active."""
    return {
        row["pk"]: read_scopes(row) for row in annotate_scopes(users).values("pk", "is_active", *scope_permissions())
    }


def get_user_scopes(user: User) -> ScopeSet:
    """As they are in the database now."""
    return get_allowed_scopes(User.objects.filter(pk=user.pk)).get(user.pk, NO_SCOPES)


def annotate_scopes(users: QuerySet[User]) -> QuerySet[User]:
    """Users with a column for each scope that needs a permission."""
    return users.annotate(**{name: has_permission(permission) for name, permission in scope_permissions().items()})


def read_scopes(row: dict[str, Any]) -> ScopeSet:
    """The scopes in a row of `with_rights`."""
    if not row["is_active"]:
        return NO_SCOPES
    return frozenset(name for name in SCOPES if row.get(name, True))


def scope_permissions() -> dict[str, str]:
    return {name: scope.permission for name, scope in SCOPES.items() if scope.permission}


def has_permission(permission: str) -> Q:
    """As Django's ModelBackend has it: a superuser, by name, or by group."""
    app, codename = permission.split(".")
    found = Permission.objects.filter(content_type__app_label=app, codename=codename)
    of_user, of_group = found.filter(user=OuterRef("pk")), found.filter(group__user=OuterRef("pk"))
    return Q(is_superuser=True) | Q(Exists(of_user)) | Q(Exists(of_group))

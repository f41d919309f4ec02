"""The scopes of credentials, the permissions behind them, and which users have them (specification, Section 5)."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import ValidationError
from django.db.models import Exists, F, Func, OuterRef, Q, QuerySet, Subquery, TextField, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Concat
from oauth2_provider.scopes import BaseScopes

from library_site.db.sql import CompiledQuery, Parameter

ScopeSet = frozenset[str]
PermissionSet = frozenset[str]


class Scope(NamedTuple):
    """`sentence` describes it to people; users with any of the permissions may have it, and every active user if one is
    None.
    """

    sentence: Any
    permissions: frozenset[str | None]


class Rights(NamedTuple):
    """The scopes that a user may have, or a credential has, and the user's permissions of PERMISSIONS."""

    scopes: ScopeSet
    permissions: PermissionSet


OWN_SCOPES: Mapping[str, Sequence[Any]] = settings.OAUTH_SCOPES
SCOPES = {name: Scope(texts[0], frozenset(texts[1:])) for name, texts in OWN_SCOPES.items()}
DEFAULT_SCOPE = "read"
NO_SCOPES: ScopeSet = frozenset()
ALL_SCOPES: ScopeSet = frozenset(SCOPES)
# What each action on API keys needs, whatever the scope. Everybody may see their own keys and end them.
KEY_PERMISSIONS: Mapping[str, Sequence[str]] = {
    "list": [],
    "retrieve": [],
    "create": ["oauth.add_apikey"],
    "destroy": [],
}
NO_PERMISSIONS: PermissionSet = frozenset()
NO_RIGHTS = Rights(NO_SCOPES, NO_PERMISSIONS)
# The permissions that credentials have. Other permissions of their users are looked up.
PERMISSIONS: PermissionSet = frozenset(
    name
    for names in [*(scope.permissions for scope in SCOPES.values()), *KEY_PERMISSIONS.values()]
    for name in names
    if name
)


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


def get_rights(users: QuerySet[User]) -> dict[int, Rights]:
    """Returns what each user may do, by id, in one query. Inactive users have no rights."""
    return {row["pk"]: read_rights(row) for row in select_rows(users)}


def get_user_rights(user_id: int) -> Rights:
    """Returns no rights if there is no such user."""
    rows = get_user_query().fetch_all(user=user_id)
    return read_rights(rows[0]) if rows else NO_RIGHTS


@cache
def get_user_query() -> CompiledQuery:
    """A token request needs it once, and Django takes longer to compile it than for anything else."""
    return CompiledQuery(select_rows(User.objects.filter(pk=Parameter("user"))))


def select_rows(users: QuerySet[User]) -> QuerySet[User, Any]:
    return users.values("pk", "is_active", **build_permission_columns(PERMISSIONS))


def read_rights(row: Mapping[str, Any]) -> Rights:
    return select_rights(row, ALL_SCOPES) if row["is_active"] else NO_RIGHTS


def get_user_scopes(user: User) -> ScopeSet:
    return get_user_rights(user.pk).scopes


def select_rights(row: Mapping[str, Any], scopes: Iterable[str], asked: PermissionSet = PERMISSIONS) -> Rights:
    """Returns those of the scopes that the active user of this row may have. The row has the columns for `asked`."""
    names = row.get("permission_names") or ""
    permissions = asked if asked and row["has_all"] else asked.intersection(names.split())
    return Rights(frozenset(name for name in scopes if is_covered(name, permissions)), permissions)


def list_asked(scope: str) -> PermissionSet:
    """Returns the permissions that tell whether a user may have the scope: none if every active user may have it."""
    needed = SCOPES[scope].permissions
    return frozenset() if None in needed else frozenset(name for name in needed if name)


def is_covered(scope: str, permissions: PermissionSet) -> bool:
    """Whether an active user with these permissions may have the scope."""
    needed = SCOPES[scope].permissions
    return None in needed or not needed.isdisjoint(permissions)


def list_groups(permissions: Iterable[str | None]) -> list[str]:
    """Returns the names of the groups that have any of the permissions."""
    groups = Group.objects.filter(permissions__in=select_permissions(permissions)).distinct()
    return [*groups.order_by("name").values_list("name", flat=True)]


def select_permissions(names: Iterable[str | None]) -> QuerySet[Permission]:
    """Selects the permissions with these names, such as `books.add_book`. None of a scope is no permission."""
    condition = Q(pk__in=[])
    for name in names:
        app, _separator, codename = (name or "").partition(".")
        condition |= Q(content_type__app_label=app, codename=codename)
    return Permission.objects.filter(condition)


class JoinedText(Func):
    """All rows of a subquery as one text. It is no Aggregate: a subquery without GROUP BY has one row."""

    function = "GROUP_CONCAT"
    output_field = TextField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, function="STRING_AGG", **context)


def build_permission_columns(permissions: PermissionSet) -> dict[str, Combinable]:
    """Returns the columns of a user from which `select_rights` finds those of the permissions that the user has.

    The condition is that of Django's ModelBackend: superusers, the user's own permissions and those of the groups.
    """
    if not permissions:
        return {}
    user = OuterRef(OuterRef("pk"))
    is_own = Exists(User.objects.filter(pk=user, user_permissions=OuterRef("pk")))
    is_of_group = Exists(Group.objects.filter(user=user, permissions=OuterRef("pk")))
    text = JoinedText(Concat("content_type__app_label", Value("."), "codename"), Value(" "))
    names = select_permissions(sorted(permissions)).filter(is_own | is_of_group).order_by().values(text=text)
    return {"has_all": F("is_superuser"), "permission_names": Subquery(names)}


def build_permission_condition(permissions: Iterable[str]) -> Q:
    """Returns the condition for users with any of the permissions, whether they are active or not."""
    granted = select_permissions(permissions)
    user_permissions = granted.filter(user=OuterRef("pk"))
    group_permissions = granted.filter(group__user=OuterRef("pk"))
    return Q(is_superuser=True) | Q(Exists(user_permissions)) | Q(Exists(group_permissions))

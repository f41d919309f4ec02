"""REST framework's permission classes: a credential needs a scope, and its user a permission (`required_permissions`).

LIBRARY_ACCESS says which requests need a credential at all.
"""

from contextlib import suppress
from typing import Any, cast

from django.contrib.auth.models import User
from django.http import HttpRequest
from rest_framework.exceptions import APIException, NotAuthenticated, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission, DjangoModelPermissions
from rest_framework.request import Request

from library_site.api.shipped import remember
from library_site.cached_settings import cached_settings
from oauth.credentials import Credential, InvalidCredential, build_challenge
from oauth.scopes import (
    NO_PERMISSIONS,
    PERMISSIONS,
    SCOPES,
    PermissionSet,
    Rights,
    get_user_rights,
    is_covered,
    list_groups,
    select_permissions,
)

# The scopes that need no credential, by the value of LIBRARY_ACCESS.
ANONYMOUS_SCOPES: dict[str, set[str]] = {"open": {"read", "write"}, "protect-writes": {"read"}, "protected": set()}
# No user is given it, and superusers have it.
UNDECLARED = "undeclared.permission"


class InsufficientScope(PermissionDenied):
    """RFC 6750, 3.1. Tells whether a new credential of the user could have the scope."""

    def __init__(self, scope: str, rights: Rights | None) -> None:
        is_possible = rights is None or scope in rights.scopes
        groups = [] if is_possible else list_groups(SCOPES[scope].permissions)
        needed = f"the group {groups[0]}" if len(groups) == 1 else f"one of the groups {', '.join(groups)}"
        super().__init__(f"The credential lacks the scope {scope}{f'. Its user needs {needed}' if groups else ''}")
        self.challenge = build_challenge(error="insufficient_scope", scope=scope)


class LacksPermission(PermissionDenied):
    """The user lacks a permission, so no scope would help. Names the permission and the groups that have it."""

    def __init__(self, name: str) -> None:
        permission, groups = select_permissions([name]).first(), list_groups([name])
        owners = f"the group {groups[0]} has" if len(groups) == 1 else f"the groups {', '.join(groups)} have"
        sentence = permission.name if permission else name
        super().__init__(f"The user lacks the permission '{sentence}'{f', which {owners}' if groups else ''}")


@remember
class LibraryAccess(BasePermission):
    """Safe methods need the scope read, all others write. LIBRARY_ACCESS says which of them need a credential."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raises NotAuthenticated, InvalidCredential, PermissionDenied."""
        check_view(request, view, get_required_scope(str(request.method)))
        return True


class HasCredential(BasePermission):
    """A credential is needed, whatever LIBRARY_ACCESS says, with the view's `scope` unless that is None."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raises NotAuthenticated, InvalidCredential, PermissionDenied."""
        if find_request_credential(request) is None:
            raise NotAuthenticated
        check_view(request, view, view.scope)
        return True


class HasUser(BasePermission):
    """The credential must act for a user, who owns what it creates."""

    message = "This needs a user, and the token is that of an app alone"

    def has_permission(self, request: Request, view: Any) -> bool:
        credential = cast("Credential | None", request.auth)
        return credential is None or credential.user_id is not None


def check_view(request: Request, view: Any, scope: str | None) -> None:
    """Raises NotAuthenticated, InvalidCredential, PermissionDenied."""
    credential = find_request_credential(request)
    permissions = get_required_permissions(view, str(request.method)) if credential else NO_PERMISSIONS
    require_permission(credential, scope, permissions)


def find_request_credential(request: HttpRequest | Request) -> Credential | None:
    """Returns the request's credential. A user of a session, or of `force_authenticate`, gets one with all the user's
    rights.
    """
    user, auth = cast("User | None", request.user), getattr(request, "auth", None)
    if isinstance(auth, Credential) or user is None or not user.is_authenticated:
        return cast("Credential | None", auth)
    scopes, permissions = get_user_rights(user.pk)
    credential = Credential(f"user {user.pk}", scopes, user.pk, permissions=permissions)
    # A token of another app stays what it is.
    cast("Any", request).auth = auth or credential
    return credential


def get_required_permissions(view: Any, method: str) -> PermissionSet:
    """Returns what a user needs: `required_permissions` of the view by action, or by method for a view without actions.
    Without them, writing needs Django's permissions of the view's model, or a superuser if it has none.
    """
    permissions = getattr(view, "required_permissions", {}).get(getattr(view, "action", method.lower()))
    if permissions is None:
        # Without a handler it is a 405.
        if method in SAFE_METHODS or not hasattr(view, method.lower()):
            return NO_PERMISSIONS
        model = find_model(view)
        permissions = DjangoModelPermissions().get_required_permissions(method, model) if model else [UNDECLARED]
    return frozenset(permissions)


def find_model(view: Any) -> Any:
    """Returns the model of `get_queryset`, as DjangoModelPermissions asks for it, or None."""
    # REST framework asserts that a view has a queryset.
    with suppress(AssertionError):
        queryset = view.get_queryset() if hasattr(view, "get_queryset") else getattr(view, "queryset", None)
        return getattr(queryset, "model", None)
    return None


def require_permission(
    credential: Credential | None, scope: str | None, permissions: PermissionSet = NO_PERMISSIONS
) -> None:
    """Raises NotAuthenticated, InvalidCredential or PermissionDenied unless a request with this credential has the
    scope, and its user the permissions. Anonymous requests have what LIBRARY_ACCESS opens.
    """
    if credential is None:
        if scope is None or not is_open_to_anonymous(scope):
            raise NotAuthenticated
    elif (scope and scope not in credential.scopes) or not has_permissions(credential, permissions):
        raise build_refusal(credential, scope, permissions)


def has_permissions(credential: Credential, permissions: PermissionSet) -> bool:
    """Whether the user has the permissions. An app that acts for nobody has its scopes alone."""
    if credential.user_id is None or permissions <= credential.permissions:
        return True
    # Credentials do not have those of models beside ours.
    unknown = permissions - PERMISSIONS
    return permissions - unknown <= credential.permissions and not list_missing(credential, unknown)


def list_missing(credential: Credential, permissions: PermissionSet) -> list[str]:
    """Returns the permissions that the user lacks now, in the database."""
    user = User.objects.filter(pk=credential.user_id or 0).first()
    return [name for name in sorted(permissions) if user is None or not user.has_perm(name)]


def build_refusal(credential: Credential, scope: str | None, permissions: PermissionSet) -> APIException:
    """Reads what the user may do now: a token has the permissions of the time when it was issued."""
    user_id = credential.user_id
    if user_id is not None and (missing := list_missing(credential, permissions)):
        return LacksPermission(missing[0])
    if scope is not None and scope not in credential.scopes:
        rights = None if user_id is None else get_user_rights(user_id)
        return InsufficientScope(scope, rights)
    if scope and not is_covered(scope, credential.permissions):
        return InvalidCredential("The access token is of an earlier release: refresh it")
    return PermissionDenied("The access token is older than a permission of its user: refresh it")


def is_open_to_anonymous(scope: str) -> bool:
    return scope in ANONYMOUS_SCOPES[cached_settings.LIBRARY_ACCESS]


def get_required_scope(method: str) -> str:
    return "read" if method in SAFE_METHODS else "write"

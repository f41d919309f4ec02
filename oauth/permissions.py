"""REST framework's permission classes. LIBRARY_ACCESS says which requests need a scope."""

from typing import Any, cast

from django.contrib.auth.models import User
from rest_framework.exceptions import NotAuthenticated, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from library_site.cached_settings import cached_settings
from oauth.credentials import Credential, build_challenge
from oauth.scopes import ALL_SCOPES, get_allowed_scopes, list_scope_groups

# The scopes that need no credential, by the value of LIBRARY_ACCESS.
ANONYMOUS_SCOPES: dict[str, set[str]] = {"open": {"read", "write"}, "protect-writes": {"read"}, "protected": set()}


class InsufficientScope(PermissionDenied):
    """RFC 6750, 3.1. Tells whether a new credential of the user could have the scope."""

    def __init__(self, scope: str, user_id: int | None) -> None:
        super().__init__(f"The credential lacks the scope {scope}{explain_missing_scope(scope, user_id)}")
        self.challenge = build_challenge(error="insufficient_scope", scope=scope)


def explain_missing_scope(scope: str, user_id: int | None) -> str:
    """Names the groups, one of which the user needs; empty if there is no user, or one who may have the scope."""
    allowed_scopes = get_allowed_scopes(User.objects.filter(pk=user_id or 0)).get(user_id or 0, ALL_SCOPES)
    groups = [] if scope in allowed_scopes else list_scope_groups(scope)
    if not groups:
        return ""
    needed = f"the group {groups[0]}" if len(groups) == 1 else f"one of the groups {', '.join(groups)}"
    return f". Its user needs {needed}"


class LibraryAccess(BasePermission):
    """Safe methods need the scope read, all others write. LIBRARY_ACCESS says which of them need a credential."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raises NotAuthenticated, InsufficientScope."""
        require_permission(cast("Credential | None", request.auth), get_required_scope(str(request.method)))
        return True


class HasCredential(BasePermission):
    """A credential is needed, whatever LIBRARY_ACCESS says."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raises NotAuthenticated."""
        if request.auth is None:
            raise NotAuthenticated
        return True


class HasViewScope(HasCredential):
    """A credential with the view's `scope` is needed, whatever LIBRARY_ACCESS says."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raises NotAuthenticated, InsufficientScope."""
        super().has_permission(request, view)
        require_permission(cast("Credential", request.auth), view.scope)
        return True


class NoUser(PermissionDenied):
    default_detail = "This needs a user, and the token is that of an app alone"


class HasUser(BasePermission):
    """The credential must act for a user, who owns what it creates."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raises NoUser."""
        credential = cast("Credential | None", request.auth)
        if credential is not None and credential.user_id is None:
            raise NoUser
        return True


def require_permission(credential: Credential | None, scope: str) -> None:
    """Raises NotAuthenticated or InsufficientScope unless a request with this credential has the scope."""
    if credential is None:
        if not is_open_to_anonymous(scope):
            raise NotAuthenticated
    elif scope not in credential.scopes:
        raise InsufficientScope(scope, credential.user_id)


def is_open_to_anonymous(scope: str) -> bool:
    return scope in ANONYMOUS_SCOPES[cached_settings.LIBRARY_ACCESS]


def get_required_scope(method: str) -> str:
    return "read" if method in SAFE_METHODS else "write"

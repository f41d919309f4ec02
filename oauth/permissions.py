"""REST framework's permission classes. LIBRARY_ACCESS says which requests need a scope."""

from typing import Any, cast

from rest_framework.exceptions import NotAuthenticated, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from library_site.cached_settings import cached_settings
from oauth.authentication import build_challenge
from oauth.credentials import Credential

# The scopes that need no credential, by the value of LIBRARY_ACCESS.
ANONYMOUS_SCOPES: dict[str, set[str]] = {"open": {"read", "write"}, "protect-writes": {"read"}, "protected": set()}


class InsufficientScope(PermissionDenied):
    """RFC 6750, 3.1."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"The credential lacks the scope {scope}")
        self.challenge = build_challenge(error="insufficient_scope", scope=scope)


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


class HasViewScope(BasePermission):
    """A credential with the view's `scope` is needed, whatever LIBRARY_ACCESS says."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raises NotAuthenticated, InsufficientScope."""
        credential = cast("Credential | None", request.auth)
        if credential is None:
            raise NotAuthenticated
        if view.scope not in credential.scopes:
            raise InsufficientScope(view.scope)
        return True


def require_permission(credential: Credential | None, scope: str) -> None:
    """Raises NotAuthenticated or InsufficientScope unless a request with this credential has the scope."""
    if credential is None:
        if not is_open_to_anonymous(scope):
            raise NotAuthenticated
    elif scope not in credential.scopes:
        raise InsufficientScope(scope)


def is_open_to_anonymous(scope: str) -> bool:
    return scope in ANONYMOUS_SCOPES[cached_settings.LIBRARY_ACCESS]


def get_required_scope(method: str) -> str:
    """The scope that a request with this method needs."""
    return "read" if method in SAFE_METHODS else "write"

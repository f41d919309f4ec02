"""What a request needs (LIBRARY_ACCESS). Named in the settings of REST framework."""

from typing import Any, cast

from django.conf import settings
from rest_framework.exceptions import NotAuthenticated, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from oauth.authentication import CHALLENGE
from oauth.credentials import Credential

# What needs no credential.
ANONYMOUS_SCOPES: dict[str, set[str]] = {"open": {"read", "write"}, "protect-writes": {"read"}, "protected": set()}


class InsufficientScope(PermissionDenied):
    """RFC 6750, 3.1."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"The credential lacks the scope {scope}")
        self.challenge = f'{CHALLENGE}, error="insufficient_scope", scope="{scope}"'


class LibraryAccess(BasePermission):
    """Reading needs the scope read, all else write, of whoever shows a credential or must show one."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raises NotAuthenticated, InsufficientScope."""
        scope = required_scope(str(request.method))
        credential = cast("Credential | None", request.auth)
        if credential is None and not is_open_to_anonymous(scope):
            raise NotAuthenticated
        if credential and scope not in credential.scopes:
            raise InsufficientScope(scope)
        return True


class HasCredential(BasePermission):
    """A credential, whatever LIBRARY_ACCESS says."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raises NotAuthenticated."""
        if request.auth is None:
            raise NotAuthenticated
        return True


class HasViewScope(BasePermission):
    """A credential with the scope that the view names as `scope`, whatever LIBRARY_ACCESS says."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raises NotAuthenticated, InsufficientScope."""
        credential = cast("Credential | None", request.auth)
        if credential is None:
            raise NotAuthenticated
        if view.scope not in credential.scopes:
            raise InsufficientScope(view.scope)
        return True


def is_open_to_anonymous(scope: str) -> bool:
    return scope in ANONYMOUS_SCOPES[settings.LIBRARY_ACCESS]


def required_scope(method: str) -> str:
    """The scope that a request needs by its method."""
    return "read" if method in SAFE_METHODS else "write"

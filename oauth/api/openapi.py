"""Describes the credentials in the OpenAPI documents."""

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension

from oauth.permissions import HasCredential, LibraryAccess, get_required_scope, is_open_to_anonymous
from oauth.scopes import SCOPES

Requirement = dict[str, list[str]]


class BearerScheme(OpenApiAuthenticationExtension):
    target_class = "oauth.authentication.BearerAuthentication"
    name = "OAuth2"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        flow = {
            "authorizationUrl": f"{settings.PUBLIC_URL}/oauth/authorize",
            "tokenUrl": f"{settings.PUBLIC_URL}/oauth/token",
            "refreshUrl": f"{settings.PUBLIC_URL}/oauth/refresh",
            "scopes": {name: str(scope.sentence) for name, scope in SCOPES.items()},
        }
        return {"type": "oauth2", "description": "An app's access, with PKCE.", "flows": {"authorizationCode": flow}}

    def get_security_requirement(self, auto_schema: Any) -> Requirement:
        return {self.name: get_required_scopes(auto_schema)}


class APIKeyScheme(OpenApiAuthenticationExtension):
    target_class = "oauth.authentication.APIKeyAuthentication"
    name = "APIKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "A program's key."}

    def get_security_requirement(self, auto_schema: Any) -> list[Requirement]:
        """Also says whether a credential is optional: drf-spectacular cannot see that in our permission classes."""
        needs_no_credential = has_library_access(auto_schema) and is_open_to_anonymous(
            get_required_scope(auto_schema.method)
        )
        return [{self.name: []}, *([{}] if needs_no_credential else [])]


def get_required_scopes(auto_schema: Any) -> list[str]:
    if HasCredential in auto_schema.view.permission_classes:
        return [auto_schema.view.scope] if auto_schema.view.scope else []
    return [get_required_scope(auto_schema.method)] if has_library_access(auto_schema) else []


def has_library_access(auto_schema: Any) -> bool:
    return LibraryAccess in auto_schema.view.permission_classes

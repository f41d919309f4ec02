"""The toolkit's server with its grants: authorization code with PKCE (S256), refresh token, and, by a setting,
client credentials (RFC 6749, 4.1, 6 and 4.4).
"""

import re
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils import timezone
from oauth2_provider.oauth2_backends import OAuthLibCore
from oauthlib.common import Request
from oauthlib.oauth2 import AuthorizationCodeGrant, ClientCredentialsGrant, WebApplicationServer
from oauthlib.oauth2.rfc6749.errors import (
    InvalidRequestError,
    InvalidScopeError,
    UnauthorizedClientError,
    UnsupportedResponseTypeError,
)

from oauth import scopes
from oauth.models import Allowance, Authorization
from oauth.scopes import ALL_SCOPES, NO_PERMISSIONS, Rights, ScopeSet
from oauth.server.redirect_uris import add_parameters

# The base64url of a SHA-256 (RFC 7636, 4.2).
CODE_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
CLIENT_CREDENTIALS = "client_credentials"
# oauthlib sets every parameter as an attribute of its request, so only these are passed on.
AUTHORIZATION_PARAMETERS = {
    *("client_id", "redirect_uri", "response_type", "response_mode", "scope", "state"),
    *("code_challenge", "code_challenge_method"),
}
TOKEN_PARAMETERS = {"grant_type", "client_id", "client_secret", "token", "token_type_hint"}
GRANT_PARAMETERS = {
    "authorization_code": {"code", "redirect_uri", "code_verifier"},
    "refresh_token": {"refresh_token", "scope"},
    CLIENT_CREDENTIALS: {"scope"},
}


class CodeGrant(AuthorizationCodeGrant):
    """oauthlib's grant, which would parse the query of the redirect URI and write it anew."""

    def prepare_authorization_response(
        self, request: Request, token: dict[str, str], headers: dict[str, str], body: None, status: int
    ) -> tuple[dict[str, str], None, int]:
        return {**headers, "Location": add_parameters(request.redirect_uri, token)}, body, status


class AuthorizationServer(WebApplicationServer):
    """The toolkit's OAUTH2_SERVER_CLASS."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.auth_grant = CodeGrant(self.request_validator)
        self.response_types["code"] = self.grant_types["authorization_code"] = self.auth_grant
        self.auth_grant.custom_validators.pre_auth = [validate_request]
        self.auth_grant.custom_validators.post_token = [narrow_scopes]
        self.refresh_grant.custom_validators.post_token = [narrow_scopes]
        client_grant = ClientCredentialsGrant(self.request_validator)
        client_grant.custom_validators.post_token = [narrow_scopes, authorize_app]
        self.grant_types[CLIENT_CREDENTIALS] = client_grant


def list_grant_types() -> list[str]:
    own_access = [CLIENT_CREDENTIALS] if settings.OAUTH_CLIENT_CREDENTIALS else []
    return ["authorization_code", "refresh_token", *own_access]


class OAuthBackend(OAuthLibCore):
    """The toolkit's OAUTH2_BACKEND_CLASS: passes known, non-empty parameters to oauthlib, as Django parsed them."""

    def _get_escaped_full_path(self, request: HttpRequest) -> str:
        parameters = {
            name: value for name, value in request.GET.dict().items() if value and name in AUTHORIZATION_PARAMETERS
        }
        query = urlencode(parameters)
        return f"{request.path}?{query}" if query else request.path

    def extract_body(self, request: HttpRequest) -> list[tuple[str, str]]:
        allowed_names = TOKEN_PARAMETERS | GRANT_PARAMETERS.get(request.POST.get("grant_type", ""), set())
        return [(name, value) for name, value in request.POST.dict().items() if value and name in allowed_names]


class QueryBackend(OAuthBackend):
    """The same for authorization requests: only the query counts, so a form cannot change it."""

    def extract_body(self, request: HttpRequest) -> list[tuple[str, str]]:
        return []


def validate_request(request: Request) -> dict[str, Any]:
    """Checks what oauthlib does not check in an authorization request. Raises OAuth2Error."""
    if request.response_type != "code":
        raise UnsupportedResponseTypeError(request=request)
    if request.response_mode not in (None, "query"):
        raise InvalidRequestError(description="response_mode must be query.", request=request)
    method, challenge = request.code_challenge_method, request.code_challenge
    if (challenge is not None or method is not None) and method != "S256":
        raise InvalidRequestError(description="code_challenge_method must be S256.", request=request)
    if method and not CODE_CHALLENGE.fullmatch(challenge or ""):
        raise InvalidRequestError(description="code_challenge must be 43 characters of base64url.", request=request)
    return {}


def narrow_scopes(request: Request) -> None:
    """Removes the scopes that the app or the user may no longer have, and reads the permissions of the user.

    Raises InvalidScopeError if no scope is left.
    """
    # Locked, so that the allowance cannot change before the token is saved.
    allowance = Allowance.objects.select_for_update(no_key=True).filter(application=request.client).first()
    # An app that acts for nobody has what a person of the staff allowed it, and no permissions.
    is_own = request.grant_type == CLIENT_CREDENTIALS
    rights = Rights(ALL_SCOPES, NO_PERMISSIONS) if is_own else scopes.get_user_rights(request.user.pk)
    granted_scopes = frozenset(request.scopes) & get_allowance_scopes(allowance) & rights.scopes
    if not granted_scopes:
        raise InvalidScopeError(request=request)
    request.scopes, request.permissions = scopes.format_scopes(granted_scopes).split(), rights.permissions


def authorize_app(request: Request) -> None:
    """Finds or creates the authorization without a user that ends these tokens of an app when it is revoked.

    Raises UnauthorizedClientError if the owner of the app is inactive.
    """
    # Locked, so that a deactivation finds the authorization.
    owner = User.objects.select_for_update(no_key=True).filter(pk=request.client.user_id or 0).first()
    if owner and not owner.is_active:
        raise UnauthorizedClientError(request=request)
    now, own = timezone.now(), {"application": request.client, "user": None, "scopes": " ".join(request.scopes)}
    authorization = Authorization.objects.active(now).filter(**own).first()
    request.authorization_id = (authorization or Authorization.objects.create(**own, created_at=now)).pk


def limit_to_allowance(application: Any, requested_scopes: ScopeSet) -> ScopeSet:
    """Returns the requested scopes that the app may have: only `read` for an app without an allowance."""
    return requested_scopes & get_allowance_scopes(getattr(application, "allowance", None))


def get_allowance_scopes(allowance: Allowance | None) -> ScopeSet:
    return frozenset((allowance.scopes if allowance else scopes.DEFAULT_SCOPE).split())

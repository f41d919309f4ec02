"""The grants that there are: authorization code and refresh token (RFC 6749, 4.1 and 6), with PKCE by S256 alone."""

import re
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from oauth2_provider.oauth2_backends import OAuthLibCore
from oauthlib.common import Request
from oauthlib.oauth2 import WebApplicationServer
from oauthlib.oauth2.rfc6749.errors import InvalidRequestError, InvalidScopeError, UnsupportedResponseTypeError

from oauth import scopes
from oauth.models import Allowance
from oauth.scopes import ScopeSet

# The base64url of a SHA-256 (RFC 7636, 4.2).
CODE_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


class AuthorizationServer(WebApplicationServer):
    """The toolkit's OAUTH2_SERVER_CLASS."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.auth_grant.custom_validators.pre_auth = [validate_request]
        self.auth_grant.custom_validators.post_token = [narrow_scopes]
        self.refresh_grant.custom_validators.post_token = [narrow_scopes]


# oauthlib makes an attribute of its request of every parameter, whatever the name.
AUTHORIZATION_PARAMETERS = {
    *("client_id", "redirect_uri", "response_type", "response_mode", "scope", "state"),
    *("code_challenge", "code_challenge_method"),
}
TOKEN_PARAMETERS = {"grant_type", "client_id", "client_secret", "token", "token_type_hint"}
GRANT_PARAMETERS = {
    "authorization_code": {"code", "redirect_uri", "code_verifier"},
    "refresh_token": {"refresh_token", "scope"},
}


class OAuthBackend(OAuthLibCore):
    """The toolkit's OAUTH2_BACKEND_CLASS: hands oauthlib what it needs, as Django read it, and what has a value."""

    def _get_escaped_full_path(self, request: HttpRequest) -> str:
        asked = {
            name: value for name, value in request.GET.dict().items() if value and name in AUTHORIZATION_PARAMETERS
        }
        query = urlencode(asked)
        return f"{request.path}?{query}" if query else request.path

    def extract_body(self, request: HttpRequest) -> list[tuple[str, str]]:
        heard = TOKEN_PARAMETERS | GRANT_PARAMETERS.get(request.POST.get("grant_type", ""), set())
        return [(name, value) for name, value in request.POST.dict().items() if value and name in heard]


class QueryBackend(OAuthBackend):
    """The same for authorization requests: they stand in the address, and no form can change what it says."""

    def extract_body(self, request: HttpRequest) -> list[tuple[str, str]]:
        return []


def validate_request(request: Request) -> dict[str, Any]:
    """Checks an authorization request for what oauthlib lets through. Raises OAuth2Error."""
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
    """Leaves of a token's scopes what app and person may have now. Raises InvalidScopeError."""
    # Held, lest the app be allowed less while its token is being made.
    held = Allowance.objects.select_for_update(no_key=True).filter(application=request.client).first()
    left = frozenset(request.scopes) & allowance_scopes(held) & scopes.get_user_scopes(request.user)
    if not left:
        raise InvalidScopeError(request=request)
    request.scopes = scopes.format_scopes(left).split()


def limit_to_allowance(application: Any, asked: ScopeSet) -> ScopeSet:
    """What of the scopes asked for the app may have; without an allowance it may read."""
    return asked & allowance_scopes(getattr(application, "allowance", None))


def allowance_scopes(allowance: Allowance | None) -> ScopeSet:
    return frozenset((allowance.scopes if allowance else scopes.DEFAULT_SCOPE).split())

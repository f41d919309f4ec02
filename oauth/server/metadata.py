"""The views of the metadata of the authorization server (RFC 8414) and of the API (RFC 9728), and of public keys
(RFC 7517).
"""

import time

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from oauth import scopes
from oauth.server.backend import list_grant_types
from oauth.tokens import access_tokens, jwks

# Seconds for which clients may cache the public keys.
JWKS_MAX_AGE = 300


@csrf_exempt
@require_safe
def metadata(request: HttpRequest) -> JsonResponse:
    """RFC 8414."""
    secret_methods = ["client_secret_basic", "client_secret_post"]
    body = {
        "issuer": settings.PUBLIC_URL,
        **{
            name: f"{settings.PUBLIC_URL}{reverse(f'oauth:{view}')}"
            for name, view in {
                "authorization_endpoint": "authorize",
                "token_endpoint": "token",
                "revocation_endpoint": "revoke",
                "introspection_endpoint": "introspect",
                "jwks_uri": "jwks",
            }.items()
        },
        "scopes_supported": list(scopes.SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": list_grant_types(),
        "token_endpoint_auth_methods_supported": [*secret_methods, "none"],
        "revocation_endpoint_auth_methods_supported": [*secret_methods, "none"],
        "introspection_endpoint_auth_methods_supported": secret_methods,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "service_documentation": f"{settings.PUBLIC_URL}/docs",
    }
    return JsonResponse(body)


@csrf_exempt
@require_safe
def protected_resource(request: HttpRequest) -> JsonResponse:
    """RFC 9728. The API is a resource of its own authorization server; its tokens name it as their audience."""
    body = {
        "resource": access_tokens.get_audience(),
        "authorization_servers": [settings.PUBLIC_URL],
        "scopes_supported": list(scopes.SCOPES),
        "bearer_methods_supported": ["header"],
        "resource_name": "Library API",
        "resource_documentation": f"{settings.PUBLIC_URL}/docs",
    }
    return JsonResponse(body)


@csrf_exempt
@require_safe
def public_jwks(request: HttpRequest) -> JsonResponse:
    """RFC 7517."""
    body = jwks.build_public_jwks(jwks.get_keys(), time.time())
    return JsonResponse(body, headers={"Cache-Control": f"public, max-age={JWKS_MAX_AGE}"})

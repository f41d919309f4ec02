"""Clients can read the metadata and the keys of the server (RFC 8414, RFC 7517)."""

import httpx
from django.conf import settings
from joserfc import jws
from joserfc.jwk import KeySet

from oauth.tokens import jwks
from tests.support.forged_tokens import decode_token
from tests.support.oauth_flows import create_confidential_app, create_reader, obtain_tokens

ISSUER = settings.PUBLIC_URL
METADATA = "/.well-known/oauth-authorization-server"
PROTECTED_RESOURCE = "/.well-known/oauth-protected-resource/api"
JWKS = "/.well-known/jwks.json"


def test_the_server_describes_itself(api: httpx.Client) -> None:
    response = api.get(METADATA, headers={"Host": "localhost"})
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.json() == {
        "issuer": ISSUER,
        "authorization_endpoint": f"{ISSUER}/oauth/authorize",
        "token_endpoint": f"{ISSUER}/oauth/token",
        "revocation_endpoint": f"{ISSUER}/oauth/revoke",
        "introspection_endpoint": f"{ISSUER}/oauth/introspect",
        "jwks_uri": f"{ISSUER}/.well-known/jwks.json",
        "scopes_supported": ["read", "write", "webhooks"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
        "revocation_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
        "introspection_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "service_documentation": f"{ISSUER}/docs",
    }


def test_a_refusal_leads_to_the_authorization_server(api: httpx.Client) -> None:
    """As RFC 9728 (5) tells clients to find it."""
    challenge = api.get("/api/v2/operations").headers["WWW-Authenticate"]
    assert challenge == f'Bearer realm="Library API", resource_metadata="{ISSUER}{PROTECTED_RESOURCE}"'
    assert {api.post(address).status_code for address in (METADATA, PROTECTED_RESOURCE, JWKS)} == {405}
    assert api.get(PROTECTED_RESOURCE).json() == {
        "resource": f"{ISSUER}/api",
        "authorization_servers": [ISSUER],
        "scopes_supported": ["read", "write", "webhooks"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Library API",
        "resource_documentation": f"{ISSUER}/docs",
    }


def test_a_token_is_for_the_resource_and_verified_by_the_published_keys(api: httpx.Client) -> None:
    """A resource server that compares both addresses refuses the token otherwise (RFC 9728, 3.3; RFC 9068, 4)."""
    token = obtain_tokens(api, create_reader(), create_confidential_app())["access_token"]
    for address in (PROTECTED_RESOURCE, PROTECTED_RESOURCE.removesuffix("/api")):
        assert api.get(address).json()["resource"] == decode_token(token)[1]["aud"]
    published = KeySet.import_key_set(api.get(JWKS).json())
    assert jws.deserialize_compact(token, published, registry=jws.JWSRegistry(algorithms=["RS256"]))


def test_the_keys_are_public(api: httpx.Client) -> None:
    response = api.get(JWKS)
    public_key = jwks.get_keys().signing_key.as_dict(private=False)
    assert response.status_code == 200
    assert response.json() == {
        "keys": [
            {
                "kty": "RSA",
                "n": public_key["n"],
                "e": public_key["e"],
                "kid": public_key["kid"],
                "use": "sig",
                "alg": "RS256",
            }
        ]
    }
    assert response.headers["Cache-Control"] == "public, max-age=300"

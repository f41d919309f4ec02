"""authlib runs the whole authorization flow, and validates the access tokens as a resource server does (RFC 9068)."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2 import rfc8414, rfc9207
from authlib.oauth2.rfc9068 import JWTBearerTokenValidator
from joserfc.jwk import KeySet

from tests.clients.conftest import PUBLIC, App
from tests.support.oauth_flows import SECRET, submit_consent
from tests.support.server import Service

SCOPE = "read write"


class ResourceServer(JWTBearerTokenValidator):
    """A resource server that is configured from the library's metadata."""

    def __init__(self, metadata: dict[str, Any]) -> None:
        super().__init__(issuer=metadata["issuer"], resource_server=f"{metadata['issuer']}/api")
        self.jwks_uri = metadata["jwks_uri"]

    def get_jwks(self) -> Any:
        return KeySet.import_key_set(httpx.get(self.jwks_uri).json())

    def accept(self, token: str, *scopes: str) -> dict[str, Any]:
        """Raises InvalidTokenError, InsufficientScopeError."""
        claims = self.authenticate_token(token)
        self.validate_token(claims, list(scopes), request=None)
        token_claims: dict[str, Any] = claims
        return token_claims


@pytest.fixture
def metadata(service: Service) -> dict[str, Any]:
    document: dict[str, Any] = httpx.get(f"{service.url}/.well-known/oauth-authorization-server").json()
    return document


@pytest.fixture
def session(metadata: dict[str, Any], app: App) -> Iterator[OAuth2Session]:
    with OAuth2Session(
        app.client_id,
        app.secret,
        token_endpoint_auth_method=app.method,
        revocation_endpoint_auth_method=app.method,
        scope=SCOPE,
        redirect_uri=app.redirect_uri,
        code_challenge_method="S256",
        **metadata,
    ) as session:
        yield session


def fetch_tokens(session: OAuth2Session, person: httpx.Client) -> dict[str, Any]:
    """Returns the response of the token endpoint to the code that the person's consent brings."""
    verifier = generate_token(64)
    endpoint = session.metadata["authorization_endpoint"]
    address, state = session.create_authorization_url(endpoint, code_verifier=verifier)
    redirect = submit_consent(person, dict(parse_qsl(urlsplit(address).query))).headers["Location"]
    tokens: dict[str, Any] = session.fetch_token(authorization_response=redirect, state=state, code_verifier=verifier)
    return tokens


def introspect(session: OAuth2Session, token: str) -> dict[str, Any]:
    """The response to an introspection by the app "catalogue"."""
    response: dict[str, Any] = session.introspect_token(
        session.metadata["introspection_endpoint"], token, auth=("catalogue", SECRET)
    ).json()
    return response


def test_the_metadata_is_valid(metadata: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTHLIB_INSECURE_TRANSPORT", "true")
    rfc8414.AuthorizationServerMetadata(metadata).validate([rfc9207.AuthorizationServerMetadata])


def test_an_app_reads_books_for_a_person_until_it_signs_out(
    service: Service, session: OAuth2Session, person: httpx.Client, app: App, metadata: dict[str, Any]
) -> None:
    resource_server = ResourceServer(metadata)
    token = fetch_tokens(session, person)
    assert (token["token_type"].lower(), token["expires_in"], token["scope"]) == ("bearer", 3600, SCOPE)
    assert session.get(f"{service.url}/oauth/resource").json()["scope"] == SCOPE
    assert session.get(f"{service.url}/api/books?limit=1").status_code == 200
    claims = resource_server.accept(token["access_token"], SCOPE)
    assert (claims["client_id"], claims["scope"]) == (app.client_id, SCOPE)
    described = {name: value for name, value in claims.items() if name != "sid"}
    assert introspect(session, token["access_token"]) == {"active": True, "token_type": "Bearer", **described}
    refreshed = session.refresh_token()
    assert refreshed["access_token"] != token["access_token"]
    assert (refreshed["refresh_token"] == token["refresh_token"]) == (app != PUBLIC)
    assert resource_server.accept(refreshed["access_token"], SCOPE)["sub"]
    endpoint = session.metadata["revocation_endpoint"]
    hint = "refresh_token"
    assert session.revoke_token(endpoint, refreshed[hint], token_type_hint=hint).status_code == 200
    assert introspect(session, refreshed["access_token"]) == {"active": False}
    with pytest.raises(OAuthError, match="invalid_grant"):
        session.refresh_token()

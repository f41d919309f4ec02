"""authlib goes through the whole flow, and accepts the access tokens as a resource server does (RFC 9068)."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2 import rfc8414, rfc9207
from authlib.oauth2.rfc6750.errors import InsufficientScopeError, InvalidTokenError
from authlib.oauth2.rfc9068 import JWTBearerTokenValidator
from joserfc.jwk import KeySet

from tests.clients.conftest import BASIC, POST, PUBLIC, App
from tests.support.oauth_flows import SECRET, consent
from tests.support.serving import Service

SCOPE = "read write"


class ResourceServer(JWTBearerTokenValidator):
    """One that knows the library by its metadata."""

    def __init__(self, metadata: dict[str, Any]) -> None:
        super().__init__(issuer=metadata["issuer"], resource_server=f"{metadata['issuer']}/api")
        self.jwks_uri = metadata["jwks_uri"]

    def get_jwks(self) -> Any:
        return KeySet.import_key_set(httpx.get(self.jwks_uri).json())

    def accept(self, token: str, *scopes: str) -> dict[str, Any]:
        """Raises InvalidTokenError, InsufficientScopeError."""
        claims = self.authenticate_token(token)
        self.validate_token(claims, list(scopes), request=None)
        accepted: dict[str, Any] = claims
        return accepted


@pytest.fixture
def metadata(service: Service) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{service.url}/.well-known/oauth-authorization-server").json()
    return found


@pytest.fixture
def session(metadata: dict[str, Any], app: App) -> Iterator[OAuth2Session]:
    with session_of(app, metadata) as opened:
        yield opened


@pytest.fixture
def resource_server(metadata: dict[str, Any]) -> ResourceServer:
    return ResourceServer(metadata)


def session_of(app: App, metadata: dict[str, Any]) -> OAuth2Session:
    return OAuth2Session(
        app.client_id,
        app.secret,
        token_endpoint_auth_method=app.method,
        revocation_endpoint_auth_method=app.method,
        scope=SCOPE,
        redirect_uri=app.redirect_uri,
        code_challenge_method="S256",
        **metadata,
    )


def brought_back(session: OAuth2Session, person: httpx.Client, allow: bool = True) -> dict[str, str]:
    """What `fetch_token` needs: the address that the person's browser was sent to, and what the app keeps for it."""
    verifier = generate_token(64)
    endpoint = session.metadata["authorization_endpoint"]
    address, state = session.create_authorization_url(endpoint, code_verifier=verifier)
    answer = consent(person, dict(parse_qsl(urlsplit(address).query)), allow)
    return {"authorization_response": answer.headers["Location"], "state": state, "code_verifier": verifier}


def signed_in(session: OAuth2Session, person: httpx.Client) -> dict[str, Any]:
    """What the token endpoint answers."""
    answered: dict[str, Any] = session.fetch_token(**brought_back(session, person))
    return answered


def introspected(session: OAuth2Session, token: str) -> dict[str, Any]:
    """As a resource server of its own asks."""
    answered: dict[str, Any] = session.introspect_token(
        session.metadata["introspection_endpoint"], token, auth=("catalogue", SECRET)
    ).json()
    return answered


def test_the_metadata_is_valid(metadata: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTHLIB_INSECURE_TRANSPORT", "true")
    rfc8414.AuthorizationServerMetadata(metadata).validate([rfc9207.AuthorizationServerMetadata])


def test_an_app_reads_books_for_a_person(service: Service, session: OAuth2Session, person: httpx.Client) -> None:
    token = signed_in(session, person)
    assert (token["token_type"].lower(), token["expires_in"], token["scope"]) == ("bearer", 3600, SCOPE)
    assert session.get(f"{service.url}/oauth/resource").json()["scope"] == SCOPE
    assert session.get(f"{service.url}/api/books?limit=1").status_code == 200


def test_a_resource_server_accepts_the_access_token(
    session: OAuth2Session, person: httpx.Client, app: App, resource_server: ResourceServer
) -> None:
    claims = resource_server.accept(signed_in(session, person)["access_token"], SCOPE)
    assert claims["client_id"] == app.client_id
    assert claims["scope"] == SCOPE


def test_a_resource_server_notices_what_a_token_is_not_for(
    session: OAuth2Session, person: httpx.Client, resource_server: ResourceServer
) -> None:
    token = signed_in(session, person)["access_token"]
    with pytest.raises(InsufficientScopeError):
        resource_server.accept(token, "webhooks")
    resource_server.resource_server = "https://elsewhere.example"
    with pytest.raises(InvalidTokenError):
        resource_server.accept(token)


def test_an_app_goes_on_by_its_refresh_token(
    session: OAuth2Session, person: httpx.Client, resource_server: ResourceServer
) -> None:
    first = signed_in(session, person)
    second = session.refresh_token()
    assert second["access_token"] != first["access_token"]
    assert resource_server.accept(second["access_token"], SCOPE)["sub"]
    third = session.refresh_token()
    assert resource_server.accept(third["access_token"], SCOPE)["sub"]


@pytest.mark.parametrize("app", [PUBLIC], indirect=True)
def test_a_public_apps_refresh_token_is_good_once(session: OAuth2Session, person: httpx.Client) -> None:
    used_up = signed_in(session, person)["refresh_token"]
    latest = session.refresh_token()["refresh_token"]
    for token in (used_up, latest):
        with pytest.raises(OAuthError, match="invalid_grant"):
            session.refresh_token(refresh_token=token)


@pytest.mark.parametrize("app", [BASIC, POST], indirect=True)
def test_a_confidential_app_keeps_its_refresh_token(session: OAuth2Session, person: httpx.Client) -> None:
    kept = signed_in(session, person)["refresh_token"]
    assert session.refresh_token()["refresh_token"] == kept
    assert session.refresh_token(refresh_token=kept)["expires_in"] == 3600


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_an_app_signs_out_with_either_token(session: OAuth2Session, person: httpx.Client, kind: str) -> None:
    token = signed_in(session, person)
    endpoint = session.metadata["revocation_endpoint"]
    assert session.revoke_token(endpoint, token[kind], token_type_hint=kind).status_code == 200
    assert introspected(session, token["access_token"]) == {"active": False}
    with pytest.raises(OAuthError, match="invalid_grant"):
        session.refresh_token()


def test_introspection_tells_what_the_access_token_tells(
    session: OAuth2Session, person: httpx.Client, resource_server: ResourceServer
) -> None:
    token = signed_in(session, person)["access_token"]
    claims = {name: value for name, value in resource_server.accept(token).items() if name != "sid"}
    assert introspected(session, token) == {"active": True, "token_type": "Bearer", **claims}


def test_a_person_may_deny(session: OAuth2Session, person: httpx.Client) -> None:
    brought = brought_back(session, person, allow=False)
    told = dict(parse_qsl(urlsplit(brought["authorization_response"]).query))
    assert (told["error"], told["state"]) == ("access_denied", brought["state"])


def test_a_code_is_bound_to_its_verifier_and_its_address(session: OAuth2Session, person: httpx.Client) -> None:
    for wrong in ({"code_verifier": generate_token(64)}, {"redirect_uri": f"{session.redirect_uri}/elsewhere"}):
        with pytest.raises(OAuthError, match="invalid_grant"):
            session.fetch_token(**(brought_back(session, person) | wrong))


def test_a_code_is_good_once(session: OAuth2Session, person: httpx.Client) -> None:
    brought = brought_back(session, person)
    session.fetch_token(**brought)
    with pytest.raises(OAuthError, match="invalid_grant"):
        session.fetch_token(**brought)
    with pytest.raises(OAuthError, match="invalid_grant"):
        session.refresh_token()


@pytest.mark.parametrize("app", [BASIC, POST], indirect=True)
def test_a_wrong_secret_is_refused(metadata: dict[str, Any], person: httpx.Client, app: App) -> None:
    wrong = session_of(app._replace(secret="wrong"), metadata)
    with wrong as session, pytest.raises(OAuthError, match="invalid_client"):
        signed_in(session, person)

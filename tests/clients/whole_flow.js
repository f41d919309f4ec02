// Every request of an app to the authorization server, with the checks of oauth4webapi: RFC 6749, 6750, 7009, 7636,
// 7662, 8414, 9068 and 9207. Standard input has the URL of the library, the apps and the cookies of a person who is
// signed in. An app stops at the first step that fails, and the script prints its name.
import assert from 'node:assert/strict';
import { webcrypto } from 'node:crypto';
import { json } from 'node:stream/consumers';
import * as oauth from 'oauth4webapi';

// Node 18 has no global `crypto`.
globalThis.crypto ??= webcrypto;

const { issuer, audience, cookie, apps, resourceServer } = await json(process.stdin);
const http = { [oauth.allowInsecureRequests]: true };
const AUTHENTICATION_METHODS = {
  none: oauth.None,
  client_secret_basic: oauth.ClientSecretBasic,
  client_secret_post: oauth.ClientSecretPost,
};
const TOKEN_RESPONSE = { token_type: 'bearer', expires_in: 3600, scope: 'read write' };
let server, app, client, authentication;

const STEPS_OF_ANY_APP = {
  async theMetadataIsValid() {
    const response = await oauth.discoveryRequest(new URL(issuer), { algorithm: 'oauth2', ...http });
    server = await oauth.processDiscoveryResponse(new URL(issuer), response);
    assert.ok(server.token_endpoint_auth_methods_supported.includes(app.method));
  },

  async aCodeIsRedeemedForTokens() {
    const { access_token, refresh_token, ...members } = await fetchTokens();
    assert.ok(access_token && refresh_token);
    assert.deepEqual(members, TOKEN_RESPONSE);
  },

  async anAccessTokenIsAJwtOfTheProfile() {
    const claims = await readClaims((await fetchTokens()).access_token);
    assert.equal(claims.client_id, app.client_id);
    assert.equal(claims.scope, 'read write');
  },

  async anAccessTokenIsGoodForTheLibrary() {
    const { access_token } = await fetchTokens();
    const { sub } = await readClaims(access_token);
    const { user_id, scope } = await (await requestResource(access_token, 'GET', '/oauth/resource')).json();
    assert.deepEqual({ user_id, scope }, { user_id: sub, scope: 'read write' });
    assert.equal((await requestResource(access_token, 'GET', '/api/books?limit=1')).status, 200);
  },

  async aRefreshTokenIsGoodForNewTokens() {
    const first = await fetchTokens();
    const { access_token, refresh_token, ...members } = await refreshTokens(first.refresh_token);
    assert.deepEqual(members, TOKEN_RESPONSE);
    assert.ok(access_token !== first.access_token, 'the access token is the old one');
    const { sub } = await readClaims(access_token);
    assert.equal(sub, (await readClaims(first.access_token)).sub);
  },

  async aRefreshMayRequestFewerScopes() {
    const { access_token } = await refreshTokens((await fetchTokens()).refresh_token, { scope: 'read' });
    assert.equal((await readClaims(access_token)).scope, 'read');
  },

  async introspectionReturnsTheClaimsOfTheToken() {
    const { access_token } = await fetchTokens();
    const { sid, ...claims } = await readClaims(access_token);
    assert.deepEqual(await introspectToken(access_token), { active: true, token_type: 'Bearer', ...claims });
  },

  async aRevokedRefreshTokenRevokesItsAccessToken() {
    const { access_token, refresh_token } = await fetchTokens();
    await revokeToken(refresh_token);
    await revokeToken(refresh_token);
    await assertRefusal('invalid_grant', refreshTokens(refresh_token));
    assert.deepEqual(await introspectToken(access_token), { active: false });
  },

  async aRevokedAccessTokenRevokesItsRefreshToken() {
    const { access_token, refresh_token } = await fetchTokens();
    await revokeToken(access_token);
    assert.deepEqual(await introspectToken(access_token), { active: false });
    await assertRefusal('invalid_grant', refreshTokens(refresh_token));
  },

  async anUnknownTokenIsRevokedAndInactive() {
    await revokeToken('unknown');
    assert.deepEqual(await introspectToken('unknown'), { active: false });
  },

  async aDeniedConsentIsAnError() {
    await assert.rejects(authorize({ allow: false }), { name: 'AuthorizationResponseError', error: 'access_denied' });
  },

  async aBadAuthorizationRequestIsAnError() {
    await assertRedirectError('invalid_scope', { scope: 'everything' });
    await assertRedirectError('invalid_request', { code_challenge_method: 'plain' });
  },

  async anUnknownCodeIsRefused() {
    const answer = new URLSearchParams({ code: 'unknown', iss: issuer });
    await assertRefusal('invalid_grant', redeemCode({ ...(await authorize()), answer: validateRedirect(answer) }));
  },

  async aCodeIsGoodOnce() {
    const authorization = await authorize();
    const { refresh_token } = await redeemCode(authorization);
    await assertRefusal('invalid_grant', redeemCode(authorization));
    await assertRefusal('invalid_grant', refreshTokens(refresh_token));
  },

  async aWrongVerifierIsRefused() {
    const verifier = oauth.generateRandomCodeVerifier();
    await assertRefusal('invalid_grant', redeemCode({ ...(await authorize()), verifier }));
  },

  async aMissingVerifierIsRefused() {
    await assertRefusal('invalid_request', redeemCode({ ...(await authorize()), verifier: oauth.nopkce }));
  },

  async anotherRedirectUriIsRefused() {
    const redirectUri = `${app.redirect_uri}/elsewhere`;
    await assertRefusal('invalid_grant', redeemCode({ ...(await authorize()), redirectUri }));
  },

  async anUnknownGrantTypeIsRefused() {
    const response = await oauth.genericTokenEndpointRequest(server, client, authentication, 'password', {}, http);
    const result = oauth.processGenericTokenEndpointResponse(server, client, response);
    await assertRefusal('unsupported_grant_type', result);
  },

  async theLibraryChallengesBadTokensAndMissingScopes() {
    const { challenge } = await assertChallenge('bearer', requestResource('unknown', 'GET', '/api/books'));
    assert.equal(challenge.error, 'invalid_token');
    await assertChallenge('bearer', requestResource('unknown', 'GET', '/oauth/resource'));
    const { access_token } = await fetchTokens({ scope: 'read' });
    const attempt = requestResource(access_token, 'POST', '/api/books');
    const { response, challenge: scopeChallenge } = await assertChallenge('bearer', attempt);
    assert.equal(response.status, 403);
    assert.equal(scopeChallenge.error, 'insufficient_scope');
    assert.equal(scopeChallenge.scope, 'write');
  },
};

const STEPS_OF_CONFIDENTIAL_APPS = {
  async aRefreshTokenStaysTheSame() {
    const first = await fetchTokens();
    const second = await refreshTokens(first.refresh_token);
    assert.ok(second.refresh_token === first.refresh_token, 'it changed');
    await refreshTokens(first.refresh_token);
  },

  async introspectionAnswersAboutItsRefreshToken() {
    const { refresh_token } = await fetchTokens();
    const { active, client_id, scope } = await introspectToken(refresh_token, client, authentication);
    assert.deepEqual({ active, client_id, scope }, { active: true, client_id: app.client_id, scope: 'read write' });
  },
};

const STEPS_BY_METHOD = {
  none: {
    async aRefreshTokenIsGoodOnce() {
      const first = await fetchTokens();
      const second = await refreshTokens(first.refresh_token);
      const third = await refreshTokens(second.refresh_token);
      await assertRefusal('invalid_grant', refreshTokens(second.refresh_token));
      await assertRefusal('invalid_grant', refreshTokens(third.refresh_token));
    },

    async aMissingChallengeIsAnError() {
      await assertRedirectError('invalid_request', { code_challenge: '', code_challenge_method: '' });
    },

    async aSecretOfAPublicAppIsRefused() {
      const attempt = redeemCode({ ...(await authorize()), as: oauth.ClientSecretPost('wrong') });
      await assertRefusal('invalid_client', attempt, 401);
    },

    async introspectionIsRefused() {
      const { access_token } = await fetchTokens();
      await assertRefusal('invalid_client', introspectToken(access_token, client, authentication), 401);
    },
  },
  client_secret_basic: {
    ...STEPS_OF_CONFIDENTIAL_APPS,

    async aWrongSecretIsChallenged() {
      const attempt = redeemCode({ ...(await authorize()), as: oauth.ClientSecretBasic('wrong') });
      const { response } = await assertChallenge('basic', attempt);
      assert.equal(response.status, 401);
      assert.equal((await response.json()).error, 'invalid_client');
    },
  },
  client_secret_post: {
    ...STEPS_OF_CONFIDENTIAL_APPS,

    async aWrongSecretIsRefused() {
      const attempt = redeemCode({ ...(await authorize()), as: oauth.ClientSecretPost('wrong') });
      await assertRefusal('invalid_client', attempt, 401);
    },
  },
};

async function fetchTokens(parameters) {
  return redeemCode(await authorize({ parameters }));
}

// The redirect to the app, validated, and the verifier that the app keeps.
async function authorize({ allow = true, parameters = {} } = {}) {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const address = new URL(server.authorization_endpoint);
  address.search = new URLSearchParams({
    response_type: 'code',
    client_id: app.client_id,
    redirect_uri: app.redirect_uri,
    scope: 'read write',
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...parameters,
  });
  return { answer: validateRedirect(await fetchRedirect(address, allow), state), verifier };
}

function validateRedirect(answer, state) {
  return oauth.validateAuthResponse(server, client, answer, state);
}

// The address of the redirect after the consent page, or of the redirect instead of it.
async function fetchRedirect(address, allow) {
  const page = await fetch(address, { headers: { cookie }, redirect: 'manual' });
  if (page.status === 302) return new URL(page.headers.get('location'));
  assert.equal(page.status, 200, 'no consent page');
  const hidden = (await page.text()).matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g);
  const body = new URLSearchParams([...hidden].map(([, name, value]) => [name, value]));
  if (allow) body.set('allow', 'yes');
  const answer = await fetch(address, { method: 'POST', headers: { cookie }, body, redirect: 'manual' });
  return new URL(answer.headers.get('location'));
}

async function redeemCode({ answer, verifier, redirectUri = app.redirect_uri, as = authentication }) {
  const response = await oauth.authorizationCodeGrantRequest(server, client, as, answer, redirectUri, verifier, http);
  return oauth.processAuthorizationCodeResponse(server, client, response);
}

async function refreshTokens(refreshToken, additionalParameters) {
  const options = { additionalParameters, ...http };
  const response = await oauth.refreshTokenGrantRequest(server, client, authentication, refreshToken, options);
  return oauth.processRefreshTokenResponse(server, client, response);
}

async function revokeToken(token) {
  await oauth.processRevocationResponse(await oauth.revocationRequest(server, client, authentication, token, http));
}

async function introspectToken(
  token,
  requestingClient = { client_id: resourceServer.client_id },
  as = oauth.ClientSecretBasic(resourceServer.secret),
) {
  const response = await oauth.introspectionRequest(server, requestingClient, as, token, http);
  return oauth.processIntrospectionResponse(server, requestingClient, response);
}

async function requestResource(accessToken, method, path) {
  return oauth.protectedResourceRequest(accessToken, method, new URL(path, issuer), undefined, undefined, http);
}

// Validates an access token as a resource server does (RFC 9068, 4).
async function readClaims(accessToken) {
  const incoming = new Request(audience, { headers: { authorization: `Bearer ${accessToken}` } });
  return oauth.validateJwtAccessToken(server, incoming, audience, http);
}

async function assertRedirectError(error, parameters) {
  await assert.rejects(authorize({ parameters }), { name: 'AuthorizationResponseError', error });
}

async function assertRefusal(error, attempt, status = 400) {
  await assert.rejects(attempt, { name: 'ResponseBodyError', error, status });
}

async function assertChallenge(scheme, attempt) {
  const failure = await attempt.then(() => assert.fail('no challenge'), (error) => error);
  assert.equal(failure.name, 'WWWAuthenticateChallengeError');
  assert.deepEqual(failure.cause.map((challenge) => challenge.scheme), [scheme]);
  return { response: failure.response, challenge: failure.cause[0].parameters };
}

for (app of apps) {
  client = { client_id: app.client_id };
  authentication = AUTHENTICATION_METHODS[app.method](app.secret);
  for (const [name, step] of Object.entries({ ...STEPS_OF_ANY_APP, ...STEPS_BY_METHOD[app.method] })) {
    try {
      await step();
    } catch (error) {
      // Only the message: other members of an error contain tokens.
      console.error(`${app.method}, ${name}: ${error.message}`);
      process.exitCode = 1;
      break;
    }
  }
}

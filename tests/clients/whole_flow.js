// All that an app does with the authorization server, as oauth4webapi insists on it: RFC 6749, 6750, 7009, 7636, 7662,
// 8414, 9068 and 9207. Standard input tells the library, the app and the cookies of a person who signed in. The first
// step that fails is named, and ends it.
import assert from 'node:assert/strict';
import { webcrypto } from 'node:crypto';
import { json } from 'node:stream/consumers';
import * as oauth from 'oauth4webapi';

// Node 18 keeps it to itself.
globalThis.crypto ??= webcrypto;

const { issuer, audience, cookie, app, resourceServer } = await json(process.stdin);
const client = { client_id: app.client_id };
const http = { [oauth.allowInsecureRequests]: true };
const METHODS = {
  none: oauth.None,
  client_secret_basic: oauth.ClientSecretBasic,
  client_secret_post: oauth.ClientSecretPost,
};
const authentication = METHODS[app.method](app.secret);
const REFRESH_RESPONSE = { token_type: 'bearer', expires_in: 3600 };
const TOKEN_RESPONSE = { ...REFRESH_RESPONSE, scope: 'read write' };
let server;

const OF_ANY_APP = {
  async theMetadataIsWellFormed() {
    const response = await oauth.discoveryRequest(new URL(issuer), { algorithm: 'oauth2', ...http });
    server = await oauth.processDiscoveryResponse(new URL(issuer), response);
    assert.ok(server.token_endpoint_auth_methods_supported.includes(app.method));
  },

  async aCodeIsRedeemedForTokens() {
    const { access_token, refresh_token, ...told } = await tokens();
    assert.ok(access_token && refresh_token);
    assert.deepEqual(told, TOKEN_RESPONSE);
  },

  async anAccessTokenIsAJwtOfTheProfile() {
    const claims = await claimsOf((await tokens()).access_token);
    assert.equal(claims.client_id, app.client_id);
    assert.equal(claims.scope, 'read write');
  },

  async anAccessTokenIsGoodForTheLibrary() {
    const { access_token } = await tokens();
    const { sub } = await claimsOf(access_token);
    const { user_id, scope } = await (await request(access_token, 'GET', '/oauth/resource')).json();
    assert.deepEqual({ user_id, scope }, { user_id: sub, scope: 'read write' });
    assert.equal((await request(access_token, 'GET', '/api/books?limit=1')).status, 200);
  },

  async aRefreshTokenIsGoodForNewTokens() {
    const first = await tokens();
    const { access_token, refresh_token, ...told } = await refreshed(first.refresh_token);
    assert.deepEqual(told, REFRESH_RESPONSE);
    assert.ok(access_token !== first.access_token, 'the access token is the old one');
    const { sub } = await claimsOf(access_token);
    assert.equal(sub, (await claimsOf(first.access_token)).sub);
  },

  async aRefreshMayAskForLess() {
    const { access_token } = await refreshed((await tokens()).refresh_token, { scope: 'read' });
    assert.equal((await claimsOf(access_token)).scope, 'read');
  },

  async introspectionTellsWhatTheTokenTells() {
    const { access_token } = await tokens();
    const { sid, ...claims } = await claimsOf(access_token);
    assert.deepEqual(await introspected(access_token), { active: true, token_type: 'Bearer', ...claims });
  },

  async aRevokedRefreshTokenTakesItsAccessTokenAlong() {
    const { access_token, refresh_token } = await tokens();
    await revoked(refresh_token);
    await revoked(refresh_token);
    await isRefused('invalid_grant', refreshed(refresh_token));
    assert.deepEqual(await introspected(access_token), { active: false });
  },

  async aRevokedAccessTokenTakesItsRefreshTokenAlong() {
    const { access_token, refresh_token } = await tokens();
    await revoked(access_token);
    assert.deepEqual(await introspected(access_token), { active: false });
    await isRefused('invalid_grant', refreshed(refresh_token));
  },

  async anUnknownTokenIsRevokedAndInactive() {
    await revoked('unknown');
    assert.deepEqual(await introspected('unknown'), { active: false });
  },

  async aDeniedConsentIsTold() {
    await assert.rejects(authorized({ allow: false }), { name: 'AuthorizationResponseError', error: 'access_denied' });
  },

  async aBadAuthorizationRequestIsTold() {
    await isTold('invalid_scope', { scope: 'everything' });
    await isTold('invalid_request', { code_challenge_method: 'plain' });
  },

  async anUnknownCodeIsRefused() {
    const answer = new URLSearchParams({ code: 'unknown', iss: issuer });
    await isRefused('invalid_grant', redeemed({ ...(await authorized()), answer: accepted(answer) }));
  },

  async aCodeIsGoodOnce() {
    const authorization = await authorized();
    const { refresh_token } = await redeemed(authorization);
    await isRefused('invalid_grant', redeemed(authorization));
    await isRefused('invalid_grant', refreshed(refresh_token));
  },

  async aWrongVerifierIsRefused() {
    const verifier = oauth.generateRandomCodeVerifier();
    await isRefused('invalid_grant', redeemed({ ...(await authorized()), verifier }));
  },

  async aMissingVerifierIsRefused() {
    await isRefused('invalid_request', redeemed({ ...(await authorized()), verifier: oauth.nopkce }));
  },

  async anotherRedirectUriIsRefused() {
    const redirectUri = `${app.redirect_uri}/elsewhere`;
    await isRefused('invalid_grant', redeemed({ ...(await authorized()), redirectUri }));
  },

  async anUnknownGrantTypeIsRefused() {
    const response = await oauth.genericTokenEndpointRequest(server, client, authentication, 'password', {}, http);
    const processed = oauth.processGenericTokenEndpointResponse(server, client, response);
    await isRefused('unsupported_grant_type', processed);
  },

  async theLibraryChallengesBadTokensAndMissingScopes() {
    const { challenge } = await isChallenged('bearer', request('unknown', 'GET', '/api/books'));
    assert.equal(challenge.error, 'invalid_token');
    await isChallenged('bearer', request('unknown', 'GET', '/oauth/resource'));
    const { access_token } = await tokens({ scope: 'read' });
    const { response, challenge: lacking } = await isChallenged('bearer', request(access_token, 'POST', '/api/books'));
    assert.equal(response.status, 403);
    assert.equal(lacking.error, 'insufficient_scope');
    assert.equal(lacking.scope, 'write');
  },
};

const OF_CONFIDENTIAL_APPS = {
  async aRefreshTokenIsKept() {
    const first = await tokens();
    const second = await refreshed(first.refresh_token);
    assert.ok((second.refresh_token ?? first.refresh_token) === first.refresh_token, 'it changed');
    await refreshed(first.refresh_token);
  },

  async introspectionTellsItOfItsRefreshToken() {
    const { refresh_token } = await tokens();
    const { active, client_id, scope } = await introspected(refresh_token, client, authentication);
    assert.deepEqual({ active, client_id, scope }, { active: true, client_id: app.client_id, scope: 'read write' });
  },
};

const BY_METHOD = {
  none: {
    async aRefreshTokenIsUsedUp() {
      const first = await tokens();
      const second = await refreshed(first.refresh_token);
      const third = await refreshed(second.refresh_token);
      await isRefused('invalid_grant', refreshed(second.refresh_token));
      await isRefused('invalid_grant', refreshed(third.refresh_token));
    },

    async aMissingChallengeIsTold() {
      await isTold('invalid_request', { code_challenge: '', code_challenge_method: '' });
    },

    async aSecretThatItNeverHadIsRefused() {
      await isRefused('invalid_client', redeemed({ ...(await authorized()), as: oauth.ClientSecretPost('wrong') }), 401);
    },

    async introspectionIsNotForIt() {
      const { access_token } = await tokens();
      await isRefused('invalid_client', introspected(access_token, client, authentication), 401);
    },
  },
  client_secret_basic: {
    ...OF_CONFIDENTIAL_APPS,

    async aWrongSecretIsChallenged() {
      const attempt = redeemed({ ...(await authorized()), as: oauth.ClientSecretBasic('wrong') });
      const { response } = await isChallenged('basic', attempt);
      assert.equal(response.status, 401);
      assert.equal((await response.json()).error, 'invalid_client');
    },
  },
  client_secret_post: {
    ...OF_CONFIDENTIAL_APPS,

    async aWrongSecretIsRefused() {
      await isRefused('invalid_client', redeemed({ ...(await authorized()), as: oauth.ClientSecretPost('wrong') }), 401);
    },
  },
};

async function tokens(asked) {
  return redeemed(await authorized({ asked }));
}

// What the browser brings back, checked, and what the app keeps for it.
async function authorized({ allow = true, asked = {} } = {}) {
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
    ...asked,
  });
  return { answer: accepted(await redirectAfterConsent(address, allow), state), verifier };
}

function accepted(answer, state) {
  return oauth.validateAuthResponse(server, client, answer, state);
}

// Where the browser is sent, by the consent page or instead of it.
async function redirectAfterConsent(address, allow) {
  const page = await fetch(address, { headers: { cookie }, redirect: 'manual' });
  if (page.status === 302) return new URL(page.headers.get('location'));
  assert.equal(page.status, 200, 'no consent page');
  const hidden = (await page.text()).matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g);
  const body = new URLSearchParams([...hidden].map(([, name, value]) => [name, value]));
  if (allow) body.set('allow', 'yes');
  const answer = await fetch(address, { method: 'POST', headers: { cookie }, body, redirect: 'manual' });
  return new URL(answer.headers.get('location'));
}

async function redeemed({ answer, verifier, redirectUri = app.redirect_uri, as = authentication }) {
  const response = await oauth.authorizationCodeGrantRequest(server, client, as, answer, redirectUri, verifier, http);
  return oauth.processAuthorizationCodeResponse(server, client, response);
}

async function refreshed(refreshToken, additionalParameters) {
  const options = { additionalParameters, ...http };
  const response = await oauth.refreshTokenGrantRequest(server, client, authentication, refreshToken, options);
  return oauth.processRefreshTokenResponse(server, client, response);
}

async function revoked(token) {
  await oauth.processRevocationResponse(await oauth.revocationRequest(server, client, authentication, token, http));
}

async function introspected(
  token,
  asking = { client_id: resourceServer.client_id },
  as = oauth.ClientSecretBasic(resourceServer.secret),
) {
  const response = await oauth.introspectionRequest(server, asking, as, token, http);
  return oauth.processIntrospectionResponse(server, asking, response);
}

async function request(accessToken, method, path) {
  return oauth.protectedResourceRequest(accessToken, method, new URL(path, issuer), undefined, undefined, http);
}

// As a resource server checks a request (RFC 9068, 4).
async function claimsOf(accessToken) {
  const incoming = new Request(audience, { headers: { authorization: `Bearer ${accessToken}` } });
  return oauth.validateJwtAccessToken(server, incoming, audience, http);
}

async function isTold(error, asked) {
  await assert.rejects(authorized({ asked }), { name: 'AuthorizationResponseError', error });
}

async function isRefused(error, attempt, status = 400) {
  await assert.rejects(attempt, { name: 'ResponseBodyError', error, status });
}

async function isChallenged(scheme, attempt) {
  const thrown = await attempt.then(() => assert.fail('no challenge'), (error) => error);
  assert.equal(thrown.name, 'WWWAuthenticateChallengeError');
  assert.deepEqual(thrown.cause.map((challenge) => challenge.scheme), [scheme]);
  return { response: thrown.response, challenge: thrown.cause[0].parameters };
}

for (const [name, step] of Object.entries({ ...OF_ANY_APP, ...BY_METHOD[app.method] })) {
  try {
    await step();
  } catch (error) {
    // No more than this: other members of an error hold tokens.
    console.error(`${name}: ${error.message}`);
    process.exitCode = 1;
    break;
  }
}

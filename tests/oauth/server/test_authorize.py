"""What is answered at /oauth/authorize (specification, Section 5; RFC 6749, 4.1), before and after sign-in."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import F
from oauth2_provider.models import Application, Grant

from oauth.models import Allowance
from tests.support.oauth_flows import (
    CALLBACK,
    CHALLENGE,
    CHALLENGED,
    LOOPBACK,
    app,
    code_for,
    confidential_app,
    consent,
    hidden,
    librarian,
    public_app,
    reader,
    redemption,
    refusal,
    request_for,
    sign_in,
    tokens_for,
    told,
)

PAGE = "/oauth/authorize"
ISSUER = settings.PUBLIC_URL


@pytest.fixture(params=["anonymous", "signed in"])
def visitor(request: pytest.FixtureRequest, api: httpx.Client) -> httpx.Client:
    if request.param == "signed in":
        sign_in(api, librarian())
    return api


def superuser(name: str = "director") -> User:
    return User.objects.create(username=name, is_superuser=True)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"client_id": None}, "invalid_client"),
        ({"client_id": ""}, "invalid_client"),
        ({"client_id": "nobody"}, "invalid_client"),
        ({"client_id": "BOOKSHOP"}, "invalid_client"),
        ({"client_id": "é" * 5000}, "invalid_client"),
        ({"response_type": None}, "unsupported_response_type"),
        ({"response_type": ""}, "unsupported_response_type"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "barcode"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        ({"response_type": "none"}, "unsupported_response_type"),
        ({"client_id": "nobody", "response_type": "token", "redirect_uri": "https://evil.example/"}, "invalid_client"),
        ({"redirect_uri": "https://evil.example/", "response_type": "token"}, "invalid_request"),
    ],
)
def test_what_is_wrong_with_client_or_response_type_is_told_here(
    visitor: httpx.Client, changed: dict[str, str | None], error: str
) -> None:
    answer = visitor.get(PAGE, params=request_for(confidential_app(), **changed))
    assert refusal(answer) == (400, error)
    assert "Location" not in answer.headers


@pytest.mark.parametrize("grant_type", ["client-credentials", "password", "implicit"])
def test_an_app_for_another_grant_is_refused(visitor: httpx.Client, grant_type: str) -> None:
    application = confidential_app()
    Application.objects.update(authorization_grant_type=grant_type)
    assert refusal(visitor.get(PAGE, params=request_for(application))) == (400, "unauthorized_client")


@pytest.mark.parametrize(
    "redirect_uri",
    [
        "https://evil.example/callback",
        "https://app.example.evil.example/callback",
        "https://app.example@evil.example/callback",
        "https://evil.example#@app.example/callback",
        "https://evil.example\\@app.example/callback",
        "https://someone@app.example/callback",
        "https://app.example/callback#",
        "https://app.example/callback#fragment",
        "https://app.example:8443/callback",
        "https://app.example:443/callback",
        "https://app.example/callback/",
        "https://app.example/callback/../elsewhere",
        "https://app.example/callback?next=https://evil.example",
        "https://app.example/Callback",
        "https://APP.example/callback",
        "http://app.example/callback",
        "//app.example/callback",
        "/callback",
        "javascript:alert(1)",
        "https://app.example/callback\r\nSet-Cookie: a=b",
        "https://app.example/callback https://evil.example/",
        "https://[app.example/callback",
        "https://app.example:99999/callback",
        "https://app.example/" + "a" * 5000,
    ],
)
def test_nobody_is_sent_to_an_address_that_the_app_has_not_registered(visitor: httpx.Client, redirect_uri: str) -> None:
    answer = visitor.get(PAGE, params=request_for(confidential_app(), redirect_uri=redirect_uri))
    assert refusal(answer) == (400, "invalid_request")
    assert "Location" not in answer.headers


@pytest.mark.parametrize(
    ("registered", "asked"),
    [
        ("http://127.0.0.1/callback", "http://127.0.0.1/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.1:1/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.1:65535/callback"),
        ("http://127.0.0.1:8000/callback", "http://127.0.0.1:51004/callback"),
        ("http://[::1]/callback", "http://[::1]:51004/callback"),
        ("http://localhost:3000/callback", "http://localhost:3000/callback"),
        ("https://a.example/one https://a.example/two", "https://a.example/two"),
        ("https://a.example/one?shop=1", "https://a.example/one?shop=1"),
    ],
)
def test_a_registered_address_is_redirected_to(api: httpx.Client, registered: str, asked: str) -> None:
    shelf = app("shelf", "public", registered, "read", client_secret="")
    sign_in(api, reader())
    answer = consent(api, request_for(shelf, redirect_uri=asked))
    assert told(answer).keys() - {"shop"} == {"code", "state", "iss"}
    assert answer.headers["Location"].startswith(asked)


@pytest.mark.parametrize(
    ("registered", "asked"),
    [
        ("http://127.0.0.1/callback", "http://127.0.0.1:51004/elsewhere"),
        ("http://127.0.0.1/callback", "https://127.0.0.1:51004/callback"),
        ("http://127.0.0.1/callback", "http://localhost:51004/callback"),
        ("http://127.0.0.1/callback", "http://[::1]:51004/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.2/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.1:80@evil.example/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.1.evil.example/callback"),
        ("http://127.0.0.1/callback", "http://someone@127.0.0.1/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.1:51004/callback#fragment"),
        ("http://127.0.0.1/callback", "http://127.0.0.1:x/callback"),
        ("http://localhost:3000/callback", "http://localhost:3001/callback"),
        ("http://localhost:3000/callback", "http://localhost/callback"),
        ("http://192.0.2.1/callback", "http://192.0.2.1:3000/callback"),
        ("https://a.example/one?shop=1", "https://a.example/one"),
        ("https://a.example/one?shop=1", "https://a.example/one?shop=2"),
        ("https://a.example/one?shop=1", "https://a.example/one?shop=1&shop=2"),
    ],
)
def test_only_the_port_of_a_loopback_address_is_free(visitor: httpx.Client, registered: str, asked: str) -> None:
    shelf = app("shelf", "public", registered, "read", client_secret="")
    assert refusal(visitor.get(PAGE, params=request_for(shelf, redirect_uri=asked))) == (400, "invalid_request")


def test_the_address_may_be_left_out_where_there_is_one(api: httpx.Client) -> None:
    sign_in(api, reader())
    answer = consent(api, request_for(confidential_app(), redirect_uri=None))
    assert answer.headers["Location"].startswith(f"{CALLBACK}?code=")


def test_the_address_must_be_named_where_there_are_two(visitor: httpx.Client) -> None:
    two = app("two", "confidential", "https://a.example/one https://a.example/two", "read")
    assert refusal(visitor.get(PAGE, params=request_for(two, redirect_uri=None))) == (400, "invalid_request")


@pytest.mark.parametrize(
    "name", ["client_id", "redirect_uri", "response_type", "scope", "state", "code_challenge", "code_challenge_method"]
)
def test_a_parameter_is_given_once(visitor: httpx.Client, name: str) -> None:
    asked = request_for(public_app())
    answer = visitor.get(f"{PAGE}?{urlencode([*asked.items(), (name, asked[name])])}")
    assert refusal(answer) == (400, "invalid_request")
    assert "Location" not in answer.headers


@pytest.mark.parametrize(
    "name",
    [
        "client_id",
        "redirect_uri",
        "response_type",
        "scope",
        "state",
        "code_challenge",
        "code_challenge_method",
        "nonce",
    ],
)
def test_nul_is_refused_wherever_it_is(visitor: httpx.Client, name: str) -> None:
    answer = visitor.get(PAGE, params=request_for(public_app(), **{name: "a\0b"}))
    assert refusal(answer) == (400, "invalid_request")


def test_a_client_of_undecodable_bytes_is_unknown(visitor: httpx.Client) -> None:
    asked = urlencode(request_for(confidential_app(), client_id=None))
    assert refusal(visitor.get(f"{PAGE}?{asked}&client_id=%ff%fe")) == (400, "invalid_client")


def test_a_state_of_undecodable_bytes_harms_nothing(api: httpx.Client) -> None:
    sign_in(api, reader())
    asked = urlencode(request_for(confidential_app(), state=None))
    page = api.get(f"{PAGE}?{asked}&state=%ff%fe")
    assert page.status_code == 200


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"scope": "nonsense"}, "invalid_scope"),
        ({"scope": "read nonsense"}, "invalid_scope"),
        ({"scope": "READ"}, "invalid_scope"),
        ({"scope": "read,write"}, "invalid_scope"),
        ({"scope": "read " * 2000 + "nonsense"}, "invalid_scope"),
        ({"scope": "webhooks"}, "invalid_scope"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"response_mode": "form_post"}, "invalid_request"),
        ({"code_challenge": CHALLENGE}, "invalid_request"),
        ({"code_challenge": CHALLENGE, "code_challenge_method": ""}, "invalid_request"),
        ({"code_challenge": CHALLENGE, "code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge": CHALLENGE, "code_challenge_method": "s256"}, "invalid_request"),
        ({"code_challenge": None, "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": "", "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": CHALLENGE[:-1], "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": f"{CHALLENGE}=", "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": f"{CHALLENGE}\n", "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": f"{CHALLENGE[:-1]}+", "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": "é" * 43, "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": "a" * 5000, "code_challenge_method": "S256"}, "invalid_request"),
    ],
)
@pytest.mark.parametrize("kind", ["confidential", "public"])
def test_the_app_is_told_of_the_rest(
    visitor: httpx.Client, changed: dict[str, str | None], error: str, kind: str
) -> None:
    """A challenge is optional for confidential apps; one that is there is checked."""
    asked = {"code_challenge": None, "code_challenge_method": None, **changed}
    if kind == "public" and "code_challenge" not in changed:
        asked |= CHALLENGED
    application = confidential_app() if kind == "confidential" else public_app()
    answer = visitor.get(PAGE, params=request_for(application, **asked))
    query = told(answer)
    query.pop("error_description", None)
    assert answer.headers["Location"].startswith(f"{LOOPBACK if kind == 'public' else CALLBACK}?")
    assert query == {"error": error, "state": "from-the-app", "iss": ISSUER}
    assert urlsplit(answer.headers["Location"]).fragment == ""


def test_a_public_app_must_send_a_challenge(visitor: httpx.Client) -> None:
    asked = request_for(public_app(), code_challenge=None, code_challenge_method=None)
    assert told(visitor.get(PAGE, params=asked))["error"] == "invalid_request"


def test_an_error_without_state_tells_of_none(visitor: httpx.Client) -> None:
    query = told(visitor.get(PAGE, params=request_for(confidential_app(), scope="nonsense", state=None)))
    query.pop("error_description", None)
    assert query == {"error": "invalid_scope", "iss": ISSUER}


def test_an_error_joins_the_query_of_the_address(visitor: httpx.Client) -> None:
    shop = app("shop", "confidential", "https://a.example/one?shop=1", "read")
    asked = request_for(shop, redirect_uri="https://a.example/one?shop=1", scope="nonsense")
    query = told(visitor.get(PAGE, params=asked))
    query.pop("error_description", None)
    assert query == {"shop": "1", "error": "invalid_scope", "state": "from-the-app", "iss": ISSUER}


def test_who_is_not_signed_in_is_asked_to_and_comes_back(api: httpx.Client) -> None:
    asked = request_for(confidential_app(), state="a&b=c /?é")
    answer = api.get(PAGE, params=asked)
    assert answer.headers["Location"].startswith("/accounts/login?next=/oauth/authorize")
    back = told(answer)["next"]
    sign_in(api, reader())
    page = api.get(back)
    assert page.status_code == 200
    assert "Bookshop" in page.text


def test_who_is_deactivated_must_sign_in(api: httpx.Client) -> None:
    user = reader()
    sign_in(api, user)
    user.is_active = False
    user.save()
    answer = api.get(PAGE, params=request_for(confidential_app()))
    assert answer.headers["Location"].startswith("/accounts/login?next=")


@pytest.mark.parametrize("challenge", [{}, CHALLENGED])
@pytest.mark.parametrize("kind", ["confidential", "public"])
def test_consent_answers_code_state_and_issuer(api: httpx.Client, challenge: dict[str, str | None], kind: str) -> None:
    application = confidential_app() if kind == "confidential" else public_app()
    sign_in(api, librarian())
    answer = consent(api, request_for(application, **challenge))
    query = told(answer)
    assert query == {"code": query["code"], "state": "from-the-app", "iss": ISSUER}
    assert answer.headers["Location"].startswith(f"{LOOPBACK if kind == 'public' else CALLBACK}?")
    assert answer.headers["Cache-Control"] == "max-age=0, no-cache, no-store, must-revalidate, private"
    assert answer.text == ""


def test_codes_cannot_be_guessed_and_are_not_stored(api: httpx.Client) -> None:
    user, application = reader(), confidential_app()
    codes = {code_for(api, user, application) for _ in range(3)}
    assert len(codes) == 3
    assert min(map(len, codes)) >= 22
    assert codes.isdisjoint(Grant.objects.values_list("code", flat=True))


@pytest.mark.parametrize("state", ["s" * 5000, "a&b=c#d%20e+f ?/é", None])
def test_state_comes_back_as_it_was(api: httpx.Client, state: str | None) -> None:
    sign_in(api, reader())
    query = told(consent(api, request_for(confidential_app(), state=state)))
    assert query.get("state") == state


@pytest.mark.parametrize("name", ["nonce", "claims", "resource", "login_hint", "user", "extra"])
@pytest.mark.parametrize("value", ["x" * 5000, "https://evil.example"])
def test_unknown_parameters_are_passed_over(api: httpx.Client, name: str, value: str) -> None:
    """RFC 6749, 3.1."""
    sign_in(api, reader())
    assert told(consent(api, request_for(confidential_app(), **{name: value}))).keys() == {"code", "state", "iss"}


def test_who_denies_sends_the_app_away(api: httpx.Client) -> None:
    sign_in(api, reader())
    answer = consent(api, request_for(confidential_app()), allow=False)
    query = told(answer)
    query.pop("error_description", None)
    assert answer.headers["Location"].startswith(f"{CALLBACK}?")
    assert query == {"error": "access_denied", "state": "from-the-app", "iss": ISSUER}
    assert not Grant.objects.exists()


@pytest.mark.parametrize("form", [{"allow": "yes"}, {"allow": "yes", "csrfmiddlewaretoken": "a" * 64}, {}])
def test_consent_from_elsewhere_is_refused(api: httpx.Client, form: dict[str, str]) -> None:
    asked = request_for(confidential_app())
    sign_in(api, reader())
    api.get(PAGE, params=asked)
    assert api.post(PAGE, params=asked, data=form).status_code == 403
    assert not Grant.objects.exists()


TAMPERED = {
    "client_id": "shelf",
    "redirect_uri": "https://evil.example/callback",
    "response_type": "token",
    "scope": "read write webhooks",
    "state": "of-the-attacker",
    "code_challenge": "a" * 43,
    "code_challenge_method": "plain",
    "response_mode": "fragment",
    "user": "1",
}


@pytest.mark.parametrize("allow", [True, False])
@pytest.mark.parametrize("names", [[name] for name in TAMPERED] + [list(TAMPERED)])
def test_what_a_form_says_besides_changes_nothing(api: httpx.Client, allow: bool, names: list[str]) -> None:
    public_app()
    asked = request_for(confidential_app(), scope="read")
    sign_in(api, librarian())
    answer = consent(api, asked, allow, form={name: TAMPERED[name] for name in names})
    query = told(answer)
    assert answer.headers["Location"].startswith(f"{CALLBACK}?")
    assert (query["state"], query["iss"], "code" in query, "error" in query) == (
        "from-the-app",
        ISSUER,
        allow,
        not allow,
    )
    assert list(Grant.objects.values_list("scope", "redirect_uri", "code_challenge", "application__client_id")) == (
        [("read", CALLBACK, "", "bookshop")] if allow else []
    )


def test_a_form_cannot_exchange_the_challenge(api: httpx.Client) -> None:
    sign_in(api, reader())
    consent(api, request_for(public_app()), form={"code_challenge": "a" * 43})
    assert list(Grant.objects.values_list("code_challenge", "code_challenge_method")) == [(CHALLENGE, "S256")]


@pytest.mark.parametrize("allow", [True, False])
@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"client_id": "nobody"}, "invalid_client"),
        ({"redirect_uri": "https://evil.example/callback"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"state": "a\0b"}, "invalid_request"),
    ],
)
def test_consent_is_validated_as_the_page_was(
    api: httpx.Client, allow: bool, changed: dict[str, str | None], error: str
) -> None:
    application = confidential_app()
    sign_in(api, reader())
    answer = consent(api, request_for(application), allow, sent_to=request_for(application, **changed))
    assert refusal(answer) == (400, error)
    assert "Location" not in answer.headers
    assert not Grant.objects.exists()


def test_nobody_consents_to_more_than_was_shown(api: httpx.Client) -> None:
    application = confidential_app(scopes="read")
    sign_in(api, librarian())
    page = hidden(api.get(PAGE, params=request_for(application)).text)
    Allowance.objects.update(scopes="read write")
    api.post(PAGE, params=request_for(application), data={**page, "allow": "yes"})
    assert Grant.objects.get().scope == "read"


def test_a_consent_that_asks_for_more_is_refused_more(api: httpx.Client) -> None:
    application = confidential_app(scopes="read")
    sign_in(api, librarian())
    query = told(consent(api, request_for(application), sent_to=request_for(application, scope="write")))
    assert (query["error"], query["state"]) == ("invalid_scope", "from-the-app")


@pytest.mark.parametrize(
    "waiver", [{"approval_prompt": "auto"}, {"prompt": "none"}, {"prompt": "login"}, {"allow": "yes"}]
)
def test_no_app_waives_consent(api: httpx.Client, waiver: dict[str, str | None]) -> None:
    user, application = librarian(), confidential_app(skip_authorization=True)
    tokens_for(api, user, application)
    page = api.get(PAGE, params=request_for(application, **waiver))
    assert page.status_code == 200
    assert not Grant.objects.exists()


def test_the_page_says_who_asks_for_what(api: httpx.Client) -> None:
    application = confidential_app()
    application.name = "<b>Books & Co</b>"
    application.save()
    sign_in(api, librarian())
    page = api.get(PAGE, params=request_for(application))
    assert "&lt;b&gt;Books &amp; Co&lt;/b&gt;" in page.text
    assert "<b>Books" not in page.text
    assert "Add, change and delete books" in page.text
    assert "Manage webhooks" not in page.text


def test_the_page_is_neither_framed_nor_kept(api: httpx.Client) -> None:
    sign_in(api, reader())
    page = api.get(PAGE, params=request_for(confidential_app()))
    policy = dict(part.strip().partition(" ")[::2] for part in page.headers["Content-Security-Policy"].split(";"))
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["Referrer-Policy"] == "same-origin"
    assert page.headers["Cache-Control"] == "max-age=0, no-cache, no-store, must-revalidate, private"
    assert policy == {
        "default-src": "'self'",
        "img-src": "'self' data:",
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'self' https:",
        "frame-ancestors": "'none'",
    }


@pytest.mark.parametrize("asked", [{}, {"client_id": "nobody"}])
def test_no_answer_is_kept(api: httpx.Client, asked: dict[str, str | None]) -> None:
    assert "no-store" in api.get(PAGE, params=request_for(confidential_app(), **asked)).headers["Cache-Control"]


@pytest.mark.parametrize(
    ("asked", "of_the_app", "person", "granted"),
    [
        ("read write", "read write", librarian, "read write"),
        ("write read", "read write", librarian, "read write"),
        ("write", "read write", librarian, "write"),
        ("read", "read write", librarian, "read"),
        (None, "read write", librarian, "read"),
        ("", "read write", librarian, "read"),
        ("read write", "read", librarian, "read"),
        ("read write", "read write", reader, "read"),
        ("read write webhooks", "read write webhooks", librarian, "read write"),
        ("read write webhooks", "read write webhooks", superuser, "read write webhooks"),
        ("read write webhooks", "write", superuser, "write"),
    ],
)
def test_a_token_may_what_was_asked_for_the_app_may_and_the_person_may(
    api: httpx.Client, asked: str | None, of_the_app: str, person: Any, granted: str
) -> None:
    application = confidential_app(scopes=of_the_app)
    assert tokens_for(api, person(), application, scope=asked)["scope"] == granted


@pytest.mark.parametrize(
    ("asked", "of_the_app", "person"), [("write", "read write", reader), ("write", "read", librarian)]
)
def test_where_nothing_is_left_the_app_is_told(api: httpx.Client, asked: str, of_the_app: str, person: Any) -> None:
    application = confidential_app(scopes=of_the_app)
    sign_in(api, person())
    query = told(api.get(PAGE, params=request_for(application, scope=asked)))
    assert query == {"error": "invalid_scope", "state": "from-the-app", "iss": ISSUER}


def test_an_app_without_an_allowance_may_read(api: httpx.Client) -> None:
    application = confidential_app()
    Allowance.objects.all().delete()
    application.refresh_from_db()
    assert tokens_for(api, librarian(), application)["scope"] == "read"


@pytest.mark.parametrize(
    ("age", "expected"),
    [(timedelta(minutes=9, seconds=30), (200, None)), (timedelta(minutes=10), (400, "code_expired"))],
)
def test_a_code_is_good_for_ten_minutes(api: httpx.Client, age: timedelta, expected: tuple[int, str | None]) -> None:
    application = confidential_app()
    code = code_for(api, reader(), application)
    Grant.objects.update(expires=F("expires") - age)
    assert refusal(api.post("/oauth/token", data=redemption(application, code))) == expected


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_other_methods_are_not_allowed(api: httpx.Client, method: str) -> None:
    sign_in(api, reader())
    api.cookies.set("csrftoken", "a" * 32)
    answer = api.request(method, PAGE, params=request_for(confidential_app()), headers={"X-CSRFToken": "a" * 32})
    assert answer.status_code == 405

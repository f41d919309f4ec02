"""The authorization endpoint (RFC 6749, 4.1.1). It reports errors in a request before the user signs in."""

from typing import Any
from urllib.parse import urlsplit

from csp.decorators import csp_update
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods
from django.views.generic.base import TemplateResponseMixin
from oauth2_provider.exceptions import OAuthToolkitError
from oauth2_provider.models import Application
from oauth2_provider.views.base import BaseAuthorizationView
from oauth2_provider.views.mixins import OAuthLibMixin
from oauthlib.oauth2.rfc6749 import errors

from library_site.http.api_errors import ErrorContent
from library_site.http.error_pages import Explanation, prefers_page, render_error_page
from oauth import scopes
from oauth.server import redirect_uris
from oauth.server.backend import QueryBackend, limit_to_allowance
from oauth.server.error_responses import describe_malformed, error_response

# oauthlib's errors that get an error page and no redirect to the requested URI.
ERRORS_SHOWN_HERE = (errors.FatalClientError, errors.UnsupportedResponseTypeError, errors.UnauthorizedClientError)
METHODS = ["GET", "HEAD", "OPTIONS", "POST"]
UNKNOWN_CLIENT_ERRORS = (errors.InvalidClientIdError, errors.MissingClientIdError)
TITLE = _("This app cannot be let in")
APP_REFUSED = Explanation(
    TITLE,
    _("It sent you here with a request that the library refuses. Tell those who make the app what is wrong with it:"),
    shows_message=True,
)
APP_UNKNOWN = Explanation(
    TITLE, _("The library does not know this app. Tell those who make the app what is wrong:"), shows_message=True
)
ADDRESS_UNKNOWN = Explanation(
    TITLE,
    _("It asks to send you to an address that is none of its own. Tell those who make the app what is wrong:"),
    shows_message=True,
)


# The method is checked before the CSRF token: a wrong method gets 405.
@method_decorator([csrf_exempt, require_http_methods(METHODS), csrf_protect, never_cache], name="dispatch")
class AuthorizationView(TemplateResponseMixin, BaseAuthorizationView):
    template_name = "oauth/authorize.html"
    oauthlib_backend_class: Any = QueryBackend

    def handle_no_permission(self) -> HttpResponse:
        response: HttpResponse = self.validate() or super().handle_no_permission()
        return response

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.validate() or self.render_consent()

    def post(self, request: HttpRequest) -> HttpResponse:
        return self.validate() or self.complete(allow="allow" in request.POST)

    def validate(self) -> HttpResponse | None:
        """Returns an error response, or None; then it has set `application`, `credentials` and `granted_scopes`."""
        if problem := describe_malformed(self.request.GET):
            return self.refuse("invalid_request", problem)
        try:
            requested_scopes, self.credentials = self.validate_authorization_request(self.request)
        except OAuthToolkitError as error:
            return self.error_response(error, None)
        self.application = self.credentials.pop("request").client
        self.requested_scopes = frozenset(requested_scopes)
        self.allowed_scopes = limit_to_allowance(self.application, self.requested_scopes)
        self.granted_scopes = self.allowed_scopes
        if self.request.user.is_authenticated:
            self.granted_scopes &= scopes.get_user_scopes(self.request.user)
        if self.request.method == "POST":
            # No more than the page showed: the app's allowance may have changed since.
            self.granted_scopes &= frozenset(self.request.POST.get("scopes", "").split())
        if self.granted_scopes:
            return None
        refusal = errors.InvalidScopeError(state=self.credentials["state"])
        return self.error_response(OAuthToolkitError(refusal, self.credentials["redirect_uri"]), self.application)

    def render_consent(self) -> HttpResponse:
        redirect_uri = self.credentials["redirect_uri"]
        target = urlsplit(redirect_uri)
        origin = f"{target.scheme}://{target.netloc}"
        context = {
            "application": self.application,
            "sentences": scopes.describe_scopes(self.granted_scopes),
            "scopes": scopes.format_scopes(self.granted_scopes),
            "sentences_beyond_app": scopes.describe_scopes(self.requested_scopes - self.allowed_scopes),
            "sentences_beyond_user": scopes.describe_scopes(self.allowed_scopes - self.granted_scopes),
            "origin": origin,
        }
        page: Any = csp_update({"form-action": redirect_uris.list_form_action_sources([redirect_uri])})
        response: HttpResponse = page(self.render_to_response)(context)
        return response

    def complete(self, allow: bool) -> HttpResponse:
        try:
            uri, *_ = self.create_authorization_response(
                self.request, scopes.format_scopes(self.granted_scopes), self.credentials, allow
            )
        except OAuthToolkitError as error:
            return self.error_response(error, self.application)
        return self.redirect(uri, self.application)

    def error_response(self, error: OAuthToolkitError, application: Application | None, **_: Any) -> HttpResponse:
        """Returns 400 for a wrong client, redirect URI or response type; redirects to the client for other errors."""
        oauth_error = error.oauthlib_error
        if isinstance(oauth_error, ERRORS_SHOWN_HERE):
            if isinstance(oauth_error, UNKNOWN_CLIENT_ERRORS):
                return self.refuse("invalid_client", oauth_error.description, APP_UNKNOWN)
            is_address_unknown = isinstance(oauth_error, errors.MismatchingRedirectURIError)
            explanation = ADDRESS_UNKNOWN if is_address_unknown else APP_REFUSED
            return self.refuse(oauth_error.error, oauth_error.description, explanation)
        _, body = OAuthLibMixin.error_response(self, error)
        return self.redirect(body["url"], application)

    def refuse(self, error: str, description: str | None, explanation: Explanation = APP_REFUSED) -> HttpResponse:
        """Returns 400: a page for browsers, and the JSON of the specification for other clients."""
        if prefers_page(self.request):
            return render_error_page(self.request, ErrorContent(400, description or error), explanation)
        return error_response(400, error, description)

    def redirect(self, redirect_to: str, application: Application | None) -> HttpResponse:
        """Adds the issuer to every redirect (RFC 9207)."""
        uri = redirect_uris.add_parameters(redirect_to, {"iss": settings.PUBLIC_URL})
        response: HttpResponse = super().redirect(uri, application)
        return response

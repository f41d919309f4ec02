"""The pages on which people sign in and out."""

from typing import Any
from urllib.parse import urlsplit

from csp.decorators import csp_update
from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from oauth2_provider.models import Application

from oauth.accounts import sessions, totp
from oauth.accounts.forms import CodeForm
from oauth.accounts.granted_apps import find_application
from oauth.accounts.next_page import redirect_with_next
from oauth.passwords import lockout
from oauth.server import redirect_uris


class SignInView(LoginView):
    """Signs a person in. A person who is already signed in is redirected to the next page."""

    template_name = "accounts/login.html"
    redirect_authenticated_user = True

    def get_redirect_url(self, *arguments: Any) -> str:
        url = super().get_redirect_url()
        # Django fails on a redirect to this page itself.
        return "" if url == self.request.path else url

    def form_valid(self, form: Any) -> HttpResponse:
        """The password was right. A person with a second factor is signed in on the next page."""
        user = form.get_user()
        has_factor = totp.find_factor(user) is not None
        if not has_factor and not totp.is_demanded(user):
            # Another person may have begun to sign in: that one knows what the session holds.
            self.request.session.flush()
            return super().form_valid(form)
        # The failures of the name stay: otherwise who knows the password could guess codes for ever.
        lockout.withdraw_attempt(self.request)
        next_page = self.get_redirect_url()
        sessions.begin_sign_in(self.request, user)
        return redirect_with_next("accounts:code" if has_factor else "accounts:two-factor", next_page)

    def get_context_data(self, **options: Any) -> dict[str, Any]:
        return super().get_context_data(application=self.get_requesting_app(), **options)

    def get_requesting_app(self) -> Application | None:
        """Returns the app that asks for access, if the next page is the consent page."""
        target = urlsplit(self.get_redirect_url())
        if target.path.rstrip("/") != reverse("oauth:authorize"):
            return None
        return find_application(QueryDict(target.query).get("client_id", ""))

    def render_to_response(self, context: dict[str, Any], **options: Any) -> HttpResponse:
        """Allows a redirect to the app after the form: it follows at once if the person may grant no scope."""
        uris = context["application"].redirect_uris.split() if context["application"] else []
        page: Any = csp_update({"form-action": redirect_uris.list_form_action_sources(uris)})
        response: HttpResponse = page(super().render_to_response)(context, **options)
        return response


class CodeView(SignInView):
    """Asks a person whose password was right for a code, and signs the person in."""

    template_name = "accounts/code.html"
    form_class: Any = CodeForm

    def dispatch(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponseBase:
        self.pending_user: Any = sessions.find_pending_user(request)
        if self.pending_user or request.user.is_authenticated:
            return super().dispatch(request, *arguments, **options)
        return redirect_with_next("accounts:login", self.get_redirect_url())

    def post(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        """Codes are counted as passwords are, with the same name."""
        if not lockout.count_password_attempt(request, self.pending_user.get_username()):
            return lockout.render_locked(request)
        return super().post(request, *arguments, **options)

    def get_form_kwargs(self) -> dict[str, Any]:
        options = super().get_form_kwargs()
        del options["request"]
        return {**options, "user": self.pending_user}

    def form_valid(self, form: Any) -> HttpResponse:
        sessions.complete_sign_in(self.request, self.pending_user, form.factor)
        return HttpResponseRedirect(self.get_success_url())

    def form_invalid(self, form: Any) -> HttpResponse:
        lockout.report_failure(self.request, self.pending_user.get_username())
        return super().form_invalid(form)


def sign_in_to_admin(request: HttpRequest) -> HttpResponseBase:
    """The admin's own page would sign in without the second factor."""
    if request.user.is_authenticated and not admin.site.has_permission(request):
        return render(request, "accounts/no_admin.html", status=403)
    return SignInView.as_view(next_page="admin:index")(request)


class SignOutView(LogoutView):
    """GET shows a form, POST signs out."""

    http_method_names = ["get", "head", "post", "options"]
    template_name = "accounts/signed_out.html"

    def get(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        return render(request, "accounts/logout.html" if request.user.is_authenticated else self.template_name)

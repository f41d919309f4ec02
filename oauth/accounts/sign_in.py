"""The pages to sign in and out."""

from typing import Any
from urllib.parse import urlsplit

from csp.decorators import csp_update
from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url
from django.urls import reverse
from oauth2_provider.models import Application

from oauth.accounts import sessions, totp
from oauth.accounts.forms import CodeForm, SignInForm
from oauth.accounts.granted_apps import find_application
from oauth.accounts.next_page import get_home, redirect_with_next
from oauth.passwords import lockout
from oauth.server import redirect_uris


class SignInView(LoginView):
    """Signs a user in. A user who is already signed in is redirected to the next page."""

    template_name = "accounts/login.html"
    form_class: Any = SignInForm
    redirect_authenticated_user = True

    def get_redirect_url(self, *arguments: Any) -> str:
        url = super().get_redirect_url()
        # Django fails on a redirect to this page itself.
        return "" if url == self.request.path else url

    def get_default_redirect_url(self) -> str:
        return resolve_url(self.next_page) if self.next_page else get_home(self.request.user)

    def form_valid(self, form: Any) -> HttpResponse:
        """A user with a second factor is redirected to the form for the code."""
        user = form.get_user()
        has_factor = totp.find_factor(user) is not None
        if not has_factor and not totp.is_demanded(user):
            # Another user may have begun to sign in with this session, and knows its contents.
            self.request.session.flush()
            return super().form_valid(form)
        # The failure counter is not reset: otherwise a client that knows the password could guess codes for ever.
        next_page = self.get_redirect_url()
        sessions.begin_sign_in(self.request, user)
        return redirect_with_next("accounts:code" if has_factor else "accounts:two-factor", next_page)

    def get_context_data(self, **options: Any) -> dict[str, Any]:
        return super().get_context_data(application=self.find_requesting_app(), **options)

    def find_requesting_app(self) -> Application | None:
        """Returns the app that asks for access, if the next page is the consent page."""
        target = urlsplit(self.get_redirect_url())
        if target.path.rstrip("/") != reverse("oauth:authorize"):
            return None
        return find_application(QueryDict(target.query).get("client_id", ""))

    def render_to_response(self, context: dict[str, Any], **options: Any) -> HttpResponse:
        """Allows the form to redirect to the app: that happens at once if the user may grant no scope."""
        uris = context["application"].redirect_uris.split() if context["application"] else []
        page: Any = csp_update({"form-action": redirect_uris.list_form_action_sources(uris)})
        response: HttpResponse = page(super().render_to_response)(context, **options)
        return response


class CodeView(SignInView):
    template_name = "accounts/code.html"
    form_class = CodeForm

    def dispatch(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponseBase:
        self.pending_user: Any = sessions.find_pending_user(request)
        if self.pending_user or request.user.is_authenticated:
            return super().dispatch(request, *arguments, **options)
        return redirect_with_next("accounts:login", self.get_redirect_url())

    def post(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        """Wrong codes count toward the lockout like wrong passwords, under the same user name."""
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
    """Replaces the admin's login view, which knows no second factor."""
    if request.user.is_authenticated and not admin.site.has_permission(request):
        return render(request, "accounts/no_admin.html", status=403)
    return SignInView.as_view(next_page="admin:index")(request)


class SignOutView(LogoutView):
    http_method_names = ["get", "head", "post", "options"]
    template_name = "accounts/signed_out.html"

    def get(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        return render(request, "accounts/logout.html" if request.user.is_authenticated else self.template_name)

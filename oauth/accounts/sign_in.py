"""The pages on which people sign in and out."""

from typing import Any
from urllib.parse import urlsplit

from csp.decorators import csp_update
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from oauth2_provider.models import Application

from oauth.accounts.granted_apps import find_application
from oauth.server import redirect_uris


class SignInView(LoginView):
    """Signs a person in. A person who is already signed in is redirected to the next page."""

    template_name = "accounts/login.html"
    redirect_authenticated_user = True

    def get_redirect_url(self, *arguments: Any) -> str:
        url = super().get_redirect_url()
        # Django fails on a redirect to this page itself.
        return "" if url == self.request.path else url

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


class SignOutView(LogoutView):
    """GET shows a form, POST signs out."""

    http_method_names = ["get", "head", "post", "options"]
    template_name = "accounts/signed_out.html"

    def get(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        return render(request, "accounts/logout.html" if request.user.is_authenticated else self.template_name)

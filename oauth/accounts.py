"""Pages for people: sign-in, sign-out, and the list of apps that have access."""

from typing import Any
from urllib.parse import urlsplit

from csp.decorators import csp_update
from django.contrib import admin, messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, LogoutView
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render, resolve_url
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from oauth2_provider.models import Application, Grant

from oauth import lockout, scopes
from oauth.models import Authorization
from oauth.server import redirect_uris
from oauth.tokens import revocations


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


@admin.site.admin_view
def change_password(request: HttpRequest) -> HttpResponse:
    """The admin's page. Its old password is counted as one at the sign-in, or a stolen session could guess it."""
    if request.method != "POST":
        return admin.site.password_change(request)
    username = request.user.get_username()
    if not lockout.count_password_attempt(request, username):
        return lockout.render_locked(request)
    response = admin.site.password_change(request)
    context = isinstance(response, TemplateResponse) and response.context_data
    if not context or "old_password" not in context["form"].errors:
        lockout.clear_attempts(request, username)
    return response


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def list_apps(request: HttpRequest) -> HttpResponse:
    """Shows the apps to which a person gave access; POST with `app` ends the access of one."""
    user: Any = request.user
    if request.method == "POST":
        revoke_access(request, user)
        return HttpResponseRedirect(resolve_url("accounts:apps"))
    return render(request, "accounts/apps.html", {"apps": list_granted_apps(user)})


def revoke_access(request: HttpRequest, user: User) -> None:
    app = find_application(request.POST.get("app", ""))
    with transaction.atomic():
        # An unused code would give it access again.
        Grant.objects.filter(user=user, application=app).delete()
        count = app and revocations.revoke_authorizations(
            Authorization.objects.filter(user=user, application=app), timezone.now()
        )
    if count:
        messages.success(request, gettext("%(app)s has no access any more.") % {"app": app})


def find_application(client_id: str) -> Application | None:
    # PostgreSQL cannot compare with NUL.
    return None if "\0" in client_id else Application.objects.filter(client_id=client_id).first()


def list_granted_apps(user: User) -> list[dict[str, Any]]:
    """Lists the apps, each with a sentence per scope, the time of its first access, and of its last token request."""
    active = Authorization.objects.active(timezone.now())
    authorizations = active.filter(user=user, application__isnull=False).select_related("application")
    apps: dict[Any, dict[str, Any]] = {}
    for row in authorizations.order_by("created_at"):
        app = apps.setdefault(row.application_id, {"application": row.application, "since": row.created_at})
        app["scopes"] = app.get("scopes", scopes.NO_SCOPES) | frozenset(row.scopes.split())
        app["used_at"] = max(row.refreshed_at or row.created_at, app.get("used_at", row.created_at))
    return [{**app, "sentences": scopes.describe_scopes(app["scopes"])} for app in apps.values()]

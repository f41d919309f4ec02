"""The page that lists the apps with access to the person's account."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from oauth2_provider.models import Application, Grant

from oauth import scopes
from oauth.models import Authorization
from oauth.tokens import revocations


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def list_apps(request: HttpRequest) -> HttpResponse:
    """Shows the apps with access; POST with `app` revokes the access of one app."""
    user: Any = request.user
    if request.method == "POST":
        revoke_access(request, user)
        return HttpResponseRedirect(resolve_url("accounts:apps"))
    return render(request, "accounts/apps.html", {"apps": list_granted_apps(user)})


def revoke_access(request: HttpRequest, user: User) -> None:
    app = find_application(request.POST.get("app", ""))
    with transaction.atomic():
        # The app could exchange an unused code for new tokens.
        Grant.objects.filter(user=user, application=app).delete()
        count = app and revocations.revoke_authorizations(
            Authorization.objects.filter(user=user, application=app), timezone.now()
        )
    if count:
        messages.success(request, gettext("%(app)s has no access any more.") % {"app": app})


def find_application(client_id: str) -> Application | None:
    # PostgreSQL rejects NUL in a parameter.
    return None if "\0" in client_id else Application.objects.filter(client_id=client_id).first()


def list_granted_apps(user: User) -> list[dict[str, Any]]:
    """Returns the apps with a sentence per scope, the time of the first access and of the last token request."""
    active = Authorization.objects.active(timezone.now())
    authorizations = active.filter(user=user, application__isnull=False).select_related("application")
    apps: dict[Any, dict[str, Any]] = {}
    for row in authorizations.order_by("created_at"):
        app = apps.setdefault(row.application_id, {"application": row.application, "since": row.created_at})
        app["scopes"] = app.get("scopes", scopes.NO_SCOPES) | frozenset(row.scopes.split())
        app["used_at"] = max(row.refreshed_at or row.created_at, app.get("used_at", row.created_at))
    return [{**app, "sentences": scopes.describe_scopes(app["scopes"])} for app in apps.values()]

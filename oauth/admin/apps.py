"""The admin pages of apps, and of the access that people gave them.

A client secret is shown only in the response that creates it.
"""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_noop, ngettext
from django.utils.translation import gettext_lazy as _
from oauth2_provider.models import AccessToken, Application, Grant, IDToken, RefreshToken

from library_site.admin.badges import format_badge, format_badge_with_note
from library_site.admin.model_admins import DescribedDeletionMixin, OwnedAdmin, ReadOnlyAdmin, build_words_filter
from library_site.admin.moments import age_column, format_date, moment_column
from oauth.admin.forms import AppForm
from oauth.models import CONSENT_LIFETIME, Authorization
from oauth.scopes import DEFAULT_SCOPE, format_scope_sentences
from oauth.server import registration
from oauth.tokens import revocations

# The toolkit has no German translation: our catalog translates the texts that the pages show.
TOOLKIT_TEXTS = [
    *(
        gettext_noop("client type"),
        gettext_noop("Confidential"),
        gettext_noop("Public"),
        gettext_noop("client ID"),
    ),
    *(gettext_noop("redirect URIs"), gettext_noop("name")),
]

Application._meta.verbose_name = _("app")
Application._meta.verbose_name_plural = _("apps")
Authorization._meta.verbose_name_plural = _("apps with access")

# Tokens have no admin pages: to revoke a token, an admin ends its authorization.
admin.site.unregister([Application, AccessToken, RefreshToken, Grant, IDToken])


@admin.register(Application)
class AppAdmin(DescribedDeletionMixin, OwnedAdmin):
    page_help = _(
        "An app is a program to which people give access to the library in their name, without telling it their "
        "password (OAuth 2.0). A confidential app runs on a server and proves itself by a secret. A public app "
        "runs on the devices of people, where nothing stays secret. Redirect URIs are the app's own addresses: "
        "the library sends people back to no other."
    )
    owner_path = "user"
    form = AppForm
    allowed_lookups = ("client_type__exact",)
    empty_sentence = _("No app is registered yet.")
    add_label = _("Register an app")
    list_display = ("name", "client_type", "may_ask", "owner", "registration_age")
    list_filter = ("client_type",)
    list_select_related = ("allowance", "user")
    search_fields = ("name", "client_id", "user__username")
    search_help_text = _("Name, client ID or owner")
    ordering = ("-pk",)
    radio_fields = {"client_type": admin.VERTICAL}
    actions = actions_for_one = danger_actions = ("make_new_secret",)
    registration_age = age_column("created", _("registered"))
    start = moment_column("created", _("registered"))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        fields = ["name", "client_type", "redirect_uris", "scopes", *(["user"] if request.user.is_superuser else [])]
        return [*fields, "client_id", "secret_note", "start"] if obj else fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("client_type", "client_id", "secret_note", "start") if obj else ()

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody else limits the scopes of an app that acts for itself, so only superusers change them."""
        is_limited = obj is None or not registration.acts_for_itself(obj) or request.user.is_superuser
        return super().has_change_permission(request, obj) and is_limited

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"user": request.user.pk}

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        return super().get_form(request, obj, change, labels={"user": _("Owner")}, **options)

    def is_possible(self, action: str, row: Any) -> bool:
        return registration.is_confidential(row)

    @admin.display(description=_("owner"))
    def owner(self, app: Any) -> str:
        return str(app.user or "")

    @admin.display(description=_("may ask to"))
    def may_ask(self, app: Any) -> str:
        scopes = app.allowance.scopes if hasattr(app, "allowance") else DEFAULT_SCOPE
        return format_scope_sentences(scopes)

    @admin.display(description=_("client secret"))
    def secret_note(self, app: Any) -> str:
        if not registration.is_confidential(app):
            return gettext("A public app has none.")
        return gettext("Only its hash is kept. “Make a new secret” replaces it.")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        scopes = form.cleaned_data["scopes"]
        if change:
            registration.change_app(obj, scopes, timezone.now())
        else:
            obj.user = obj.user or (None if request.user.is_superuser else request.user)
            obj.new_secret = registration.register_app(obj, scopes)

    def response_add(self, request: HttpRequest, obj: Any, *arguments: Any, **options: Any) -> HttpResponse:
        if obj.new_secret:
            return self.show_secret(request, obj, obj.new_secret)
        message = gettext("The app is registered. A public app has no secret.")
        self.message_user(request, message, messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:oauth2_provider_application_change", args=[obj.pk]))

    def show_secret(self, request: HttpRequest, app: Any, secret: str) -> HttpResponse:
        return self.show_once(request, app, {gettext("Client ID"): app.client_id, gettext("Client secret"): secret})

    @admin.action(description=_("Make a new secret"), permissions=["change"])
    def make_new_secret(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Only for one app at a time: the old secret stops working at once."""
        apps = list(queryset[:2])
        if len(apps) != 1 or not registration.is_confidential(apps[0]):
            self.message_user(request, gettext("Nothing was changed: select one confidential app."), messages.ERROR)
            return None
        secret = registration.renew_secret(apps[0])
        self.record_action(request, queryset, gettext_noop("Made a new secret."))
        return self.show_secret(request, apps[0], secret)

    def describe_deletion(self, obj: Any) -> str:
        count = Authorization.objects.filter(ended_at=None, application=obj).count()
        if not count:
            return gettext("%(app)s: nobody has given it access") % {"app": obj}
        message = ngettext(
            "%(app)s: ends the access of %(count)d person", "%(app)s: ends the access of %(count)d people", count
        )
        return message % {"app": obj, "count": count}


@admin.register(Authorization)
class AuthorizationAdmin(ReadOnlyAdmin, OwnedAdmin):
    page_help = _(
        "Each row is the access that a person gave an app. It is refreshed while the app is used. After 90 days "
        "the app has to ask again. An access that you end here stops the app at once."
    )
    owner_path = "application__user"
    allowed_lookups = ("ended_at__isempty",)
    empty_sentence = _("Nobody has given an app access yet.")
    empty_place = (_("Apps"), "admin:oauth2_provider_application_changelist")
    list_display = ("sentence", "state", "consent_age", "last_refresh")
    list_display_links = None
    list_filter = (("ended_at", build_words_filter(admin.EmptyFieldListFilter, _("in use"), _("ended"))),)
    list_select_related = ("user", "application")
    search_fields = ("user__username", "application__name", "application__client_id")
    search_help_text = _("Person, app or client ID")
    ordering = ("-created_at",)
    actions = danger_actions = ("end",)
    consent_age = age_column("created_at", _("given"))
    last_refresh = age_column("refreshed_at", _("last refreshed"), _("never"))

    def is_possible(self, action: str, row: Authorization) -> bool:
        return row.ended_at is None

    @admin.display(description=_("access"))
    def sentence(self, authorization: Authorization) -> str:
        names = {
            "user": authorization.user or gettext("A deleted person"),
            "app": authorization.application or gettext("A deleted app"),
        }
        is_own = authorization.application and registration.acts_for_itself(authorization.application)
        return format_html(
            '{}: <span class="quiet">{}</span>',
            (gettext("%(app)s has access of its own") if is_own else gettext("%(user)s gave %(app)s access")) % names,
            format_scope_sentences(authorization.scopes),
        )

    @admin.display(description=_("state"))
    def state(self, authorization: Authorization) -> str:
        if authorization.ended_at:
            return format_badge_with_note(gettext("Ended"), "", format_date(authorization.ended_at))
        is_expired = authorization.created_at <= timezone.now() - CONSENT_LIFETIME
        return format_badge(gettext("Expired"), "warning") if is_expired else format_badge(gettext("Active"), "good")

    @admin.action(description=_("End access"), permissions=["change"])
    def end(self, request: HttpRequest, queryset: QuerySet[Authorization]) -> None:
        # A search joins other tables; their rows must not be locked.
        count = revocations.revoke_authorizations(
            Authorization.objects.filter(pk__in=queryset.values("pk")), timezone.now()
        )
        self.record_action(request, queryset, gettext_noop("Ended."))
        self.report(request, ngettext("The access is ended.", "%(count)d accesses are ended.", count), count)

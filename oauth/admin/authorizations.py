"""The admin pages of authorizations."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_noop, ngettext
from django.utils.translation import gettext_lazy as _

from library_site.admin.badges import format_badge, format_badge_with_note
from library_site.admin.model_admins import OwnedAdmin, ReadOnlyAdmin, build_words_filter
from library_site.admin.moments import age_column, format_date
from oauth.models import CONSENT_LIFETIME, Authorization
from oauth.scopes import format_scope_sentences
from oauth.server import registration
from oauth.tokens import revocations

Authorization._meta.verbose_name_plural = _("apps with access")


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

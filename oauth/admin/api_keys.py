"""The admin pages of API keys."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop, ngettext
from django.utils.translation import gettext_lazy as _

from library_site.admin.badges import format_badge, format_badge_with_note
from library_site.admin.model_admins import OwnedAdmin, build_words_filter
from library_site.admin.moments import age_column, format_date, moment_column
from oauth import api_keys
from oauth.admin.forms import MAY_LABEL, APIKeyForm
from oauth.models import APIKey
from oauth.scopes import DEFAULT_SCOPE, format_scope_sentences


@admin.register(APIKey)
class APIKeyAdmin(OwnedAdmin):
    page_help = _(
        "With a key a program uses the library without a person who signs in, such as a script that adds books at "
        "night. Whoever has the text of a key can do what the key may do: keep it like a password. A key cannot "
        "be changed: revoke it, and make another one."
    )
    owner_path = "owner"
    form = APIKeyForm
    allowed_lookups = ("revoked_at__isempty",)
    empty_sentence = _("No program has a key yet.")
    add_label = _("Make an API key")
    list_display = ("name", "state", "may", "owner", "last_use")
    list_filter = (("revoked_at", build_words_filter(admin.EmptyFieldListFilter, _("valid"), _("revoked"))),)
    list_select_related = ("owner",)
    search_fields = ("name", "prefix", "owner__username")
    search_help_text = _("Name, first letters of the key or owner")
    ordering = ("-pk",)
    actions = danger_actions = ("revoke",)
    start = moment_column("created_at", _("made"))
    last_use = age_column("last_used_at", _("last used"), _("never used"))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        if obj:
            return ["state", "may", "owner", "key_prefix", "start", "last_use"]
        return ["name", "scopes", "expires_at", *(["owner"] if request.user.is_superuser else [])]

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        form: Any = super().get_form(request, obj, change, **options)
        form.creator = request.user
        return form

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"scopes": [DEFAULT_SCOPE], "owner": request.user.pk}

    def is_possible(self, action: str, row: APIKey) -> bool:
        return row.revoked_at is None

    def get_headline(self, row: APIKey) -> str:
        return row.name

    @admin.display(description=_("state"))
    def state(self, key: APIKey) -> str:
        if key.revoked_at:
            return format_badge_with_note(gettext("Revoked"), "bad", format_date(key.revoked_at))
        if not key.expires_at:
            return format_badge(gettext("Active"), "good")
        if key.expires_at <= timezone.now():
            return format_badge_with_note(gettext("Expired"), "warning", format_date(key.expires_at))
        until = gettext("until %(date)s") % {"date": format_date(key.expires_at)}
        return format_badge_with_note(gettext("Active"), "good", until)

    @admin.display(description=MAY_LABEL)
    def may(self, key: APIKey) -> str:
        return format_scope_sentences(key.scopes)

    @admin.display(description=_("begins with"))
    def key_prefix(self, key: APIKey) -> str:
        return f"lib_{key.prefix}"

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The list allows the action; a key itself cannot be changed."""
        return obj is None and super().has_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Revoked keys stay visible."""
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Runs inside the transaction of Django's view. Raises TooManyKeys."""
        values, owner = form.cleaned_data, form.cleaned_data.get("owner", request.user)
        key, obj.text = api_keys.create_key(
            owner, values["name"], values["scopes"], timezone.now(), values["expires_at"]
        )
        obj.pk, obj.prefix, obj.owner = key.pk, key.prefix, owner

    def response_add(self, request: HttpRequest, obj: Any, *arguments: Any, **options: Any) -> HttpResponse:
        return self.show_once(request, obj, {gettext("API key"): obj.text})

    def add_view(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        try:
            return super().add_view(request, *arguments, **options)
        except api_keys.TooManyKeys:
            message = gettext("No key was made: %(count)d are there already; revoke one first.")
            self.message_user(request, message % {"count": api_keys.MAX_KEYS_PER_USER}, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    @admin.action(description=_("Revoke"), permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[APIKey]) -> None:
        count = api_keys.revoke_keys(APIKey.objects.filter(pk__in=queryset.values("pk")), timezone.now())
        self.record_action(request, queryset, gettext_noop("Revoked."))
        self.report(request, ngettext("The key is revoked.", "%(count)d keys are revoked.", count), count)

"""The admin pages of sources and of the events that they send."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.translation import gettext, gettext_noop, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters

from library_site.admin.badges import format_badge
from library_site.admin.model_admins import ReadOnlyAdmin, build_words_filter
from library_site.admin.moments import age_column, format_date, format_short_moment, moment_column
from webhooks import inbox
from webhooks.admin.forms import SourceForm, describe_key
from webhooks.admin.model_admins import (
    SelectionAdmin,
    describe_waiting,
    format_json,
    require_one,
    require_selection,
)
from webhooks.models import Received, Source, SourceSecret

# "Inbox" is no plural, and the list counts its rows.
Received._meta.verbose_name_plural = _("received events")


class SourceSecretInline(admin.TabularInline):
    model = SourceSecret
    template = "admin/webhooks/source_secrets.html"
    fields = ()
    ordering = ("pk",)
    extra = 0

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("webhooks.change_source")


@admin.register(Source)
class SourceAdmin(SelectionAdmin):
    page_help = _(
        "A source is another service that sends events to the library, signed with a secret that both know. What "
        "the library does with them is up to the apps beside it."
    )
    form = SourceForm
    allowed_lookups = ("enabled__exact",)
    empty_sentence = _("No other service sends its events here yet.")
    add_label = _("Add a source")
    list_display = ("name", "state", "form", "creation_date")
    list_filter = (("enabled", build_words_filter(admin.BooleanFieldListFilter, _("enabled"), _("disabled"))),)
    search_fields = ("name",)
    search_help_text = _("Name")
    ordering = ("name",)
    radio_fields = {"form": admin.VERTICAL}
    inlines = (SourceSecretInline,)
    actions = actions_for_one = ("add_secret",)
    creation_date = moment_column("created_at", _("added"), format_date)
    start = moment_column("created_at", _("added"))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        fields = ["name", "form", "enabled"]
        secret = ["secret"] if self.has_change_permission(request, obj) or obj is None else []
        return [*fields, *secret, *self.get_readonly_fields(request, obj)]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("address", "start") if obj else ()

    @admin.display(description=_("state"))
    def state(self, source: Source) -> str:
        return (
            format_badge(gettext("Enabled"), "good") if source.enabled else format_badge(gettext("Disabled"), "warning")
        )

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {}

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Deleting a source would also delete its events: disable it instead."""
        return False

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj else ()

    @admin.display(description=_("address"))
    def address(self, source: Source) -> str:
        return settings.PUBLIC_URL + reverse("webhooks:receive", kwargs={"source": source.name})

    @method_decorator(sensitive_post_parameters("secret"))
    def changeform_view(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        return super().changeform_view(request, *arguments, **options)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Runs in the transaction of Django's view."""
        now, secret = timezone.now(), form.cleaned_data["secret"]
        if not change:
            obj.created_at = now
        super().save_model(request, obj, form, change)
        if secret or not change:
            obj.new_secret = inbox.add_source_secret(obj, secret, now)

    def response_add(self, request: HttpRequest, obj: Any, *arguments: Any, **options: Any) -> HttpResponse:
        if request.POST.get("secret"):
            return super().response_add(request, obj, *arguments, **options)
        return self.show_once(request, obj, {gettext("Secret"): obj.new_secret}, describe_key(obj.form))

    @admin.action(description=_("Make a new secret"), permissions=["change"])
    def add_secret(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """For one source only. Its other secrets stay valid until they are deleted."""
        source = require_one(queryset)
        with transaction.atomic():
            secret = inbox.add_source_secret(source, None, timezone.now())
            self.record_action(request, [source], gettext_noop("Made a new secret."))
        return self.show_once(request, source, {gettext("Secret"): secret}, describe_key(source.form))


@admin.register(Received)
class ReceivedAdmin(ReadOnlyAdmin, SelectionAdmin):
    page_help = _(
        "These are the events that sources sent. If one cannot be processed, it is tried again. After the last "
        "attempt it is given up: nothing more happens unless you let it be processed again."
    )
    allowed_lookups = ("state__exact", "source__id__exact")
    empty_sentence = _("No source has sent an event yet.")
    empty_place = (_("Sources"), "admin:webhooks_source_changelist")
    list_display = ("kind", "source", "state_badge", "outcome", "age")
    list_filter = ("state", "source")
    ordering = ("-pk",)
    fieldsets = (
        (None, {"fields": ("outcome", "error", "source", "content")}),
        (_("Details"), {"fields": ("event_id", "receipt_time"), "classes": ("collapse",)}),
    )
    readonly_fields = ("outcome", "error", "source", "content", "event_id", "receipt_time")
    actions = ("requeue",)
    age = age_column("received_at", _("when"))
    receipt_time = moment_column("received_at", _("received"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("source").defer("body")

    def is_possible(self, action: str, row: Any) -> bool:
        return bool(row.state == Received.State.DEAD)

    def get_headline(self, row: Any) -> str:
        values = {"kind": row.kind, "source": row.source, "time": format_short_moment(row.received_at)}
        return gettext("%(kind)s of %(source)s, %(time)s") % values

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Leaves out the error if there is none."""
        (name, main), details = self.fieldsets
        fields = tuple(field for field in main["fields"] if field != "error" or (obj and obj.error))
        return ((name, {"fields": fields}), details)

    @admin.display(description=_("what happened"))
    def outcome(self, event: Received) -> str:
        if event.state == Received.State.DONE:
            return gettext("The library has processed it.")
        if event.state == Received.State.DEAD:
            words = ngettext("Given up after %(count)d attempt.", "Given up after %(count)d attempts.", event.attempted)
            return words % {"count": event.attempted}
        return describe_waiting(event.attempted, event.next_at)

    @admin.display(description=_("body"))
    def content(self, event: Received) -> str:
        return format_json(event.body)

    @admin.action(description=_("Process again"), permissions=["change"])
    def requeue(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        dead = [row for row in require_selection(queryset) if row.state == Received.State.DEAD]
        with transaction.atomic():
            count = inbox.requeue_dead(Received.objects.filter(pk__in=[row.pk for row in dead]))
            self.record_action(request, dead, gettext_noop("Processed again."))
        message = ngettext("The event is processed again.", "%(count)d events are processed again.", count)
        return self.redirect_with_message(request, message, dead)

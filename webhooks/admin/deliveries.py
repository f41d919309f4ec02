"""The admin page of deliveries and their attempts."""

from typing import Any

from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext, gettext_noop, ngettext
from django.utils.translation import gettext_lazy as _

from library_site.admin.badges import format_badge
from library_site.admin.model_admins import OwnedAdmin, ReadOnlyAdmin
from library_site.admin.moments import age_column, format_short_moment, moment_column
from library_site.admin.stored_texts import translate_stored
from webhooks import endpoints
from webhooks.admin.model_admins import (
    MAX_URL_SHOWN,
    SelectionAdmin,
    decode_text,
    describe_waiting,
    format_json,
    get_change_url,
    require_selection,
    shorten_url,
)
from webhooks.models import Attempt, Delivery, Endpoint, SignatureForm
from webhooks.signing import EVENT, STANDARD_ID, STANDARD_TIMESTAMP, TIMESTAMP

# The heading of a delivery's page: what happened, and when.
HEADLINES: dict[str, Any] = {
    Delivery.State.WAITING: _("%(kind)s waiting since %(time)s"),
    Delivery.State.DELIVERED: _("%(kind)s delivered, %(time)s"),
    Delivery.State.DEAD: _("%(kind)s given up, %(time)s"),
}
FAILING = _("%(kind)s failing since %(time)s")


class EndpointFilter(admin.RelatedFieldListFilter):
    """Lists the newest endpoints that the user may see. The parameter in the URL can be the id of any endpoint."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        rows = Endpoint.objects.not_deleted().order_by("-pk")
        if not request.user.is_superuser:
            rows = rows.filter(owner=request.user.pk)
        return [
            (pk, Truncator(url.removeprefix("https://")).chars(MAX_URL_SHOWN))
            for pk, url in rows.values_list("pk", "url")[: endpoints.MAX_ENDPOINTS_PER_USER]
        ]

    def has_output(self) -> bool:
        """Otherwise Django ignores the filter in the URL."""
        return True


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin, SelectionAdmin, OwnedAdmin):
    page_help = _(
        "A delivery is one event for one endpoint. If it fails, it is tried again after longer and longer times. "
        "After the last attempt it is given up: nothing more is sent unless you send it again."
    )
    owner_path = "endpoint__owner"
    allowed_lookups = ("state__exact", "endpoint__id__exact")
    empty_sentence = _("No event has been sent yet: an endpoint is the address of a program that receives events.")
    empty_place = (_("Endpoints"), "admin:webhooks_endpoint_changelist")
    list_display = ("headline", "address", "state_badge", "outcome", "age")
    list_filter = ("state", ("endpoint", EndpointFilter))
    ordering = ("-pk",)
    fieldsets = (
        (None, {"fields": ("attempts", "outcome", "receiver", "body")}),
        (_("Details"), {"fields": ("uuid", "written"), "classes": ("collapse",)}),
    )
    readonly_fields = ("attempts", "outcome", "receiver", "body", "uuid", "written")
    actions = ("redeliver",)
    age = age_column("created_at", _("when"))
    written = moment_column("created_at", _("written"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("event", "endpoint").defer("event__body")

    def is_possible(self, action: str, row: Any) -> bool:
        return bool(row.endpoint.state == Endpoint.State.ACTIVE)

    def get_headline(self, row: Any) -> str:
        moment = row.finished_at or row.created_at
        is_failing = row.state == Delivery.State.WAITING and row.attempted
        words = FAILING if is_failing else HEADLINES[row.state]
        # A heading breaks between words, and not in the time.
        time = format_short_moment(moment).replace(" ", "\N{NO-BREAK SPACE}")
        return str(words) % {"kind": row.event.kind, "time": time}

    @admin.display(description=_("state"))
    def state_badge(self, row: Any) -> str:
        is_failing = row.state == Delivery.State.WAITING and row.attempted
        return format_badge(gettext("Failing"), "warning") if is_failing else super().state_badge(row)

    @admin.display(description=_("event"))
    def headline(self, delivery: Delivery) -> str:
        return delivery.event.kind

    @admin.display(description=_("what happened"))
    def outcome(self, delivery: Delivery) -> str:
        count = delivery.attempted
        if delivery.state == Delivery.State.DELIVERED:
            words = ngettext(
                "The receiver took it at the first attempt.", "The receiver took it at attempt %(count)d.", count
            )
            return words % {"count": count}
        if delivery.state == Delivery.State.DEAD:
            words = ngettext("Given up after %(count)d attempt.", "Given up after %(count)d attempts.", count)
            nothing = gettext("Nothing more is sent, unless you send it again.")
            return f"{words % {'count': count}} {nothing}"
        return describe_waiting(count, delivery.next_at)

    @admin.display(description=_("attempts"))
    def attempts(self, delivery: Delivery) -> str:
        attempts = delivery.attempts.order_by("pk")
        context = {"attempts": [describe_attempt(attempt, delivery) for attempt in attempts]}
        return render_to_string("admin/webhooks/attempts.html", context)

    @admin.display(description=_("event's id"))
    def uuid(self, delivery: Delivery) -> str:
        return str(delivery.event.uuid)

    @admin.display(description=_("endpoint"))
    def address(self, delivery: Delivery) -> str:
        return shorten_url(delivery.endpoint.url)

    @admin.display(description=_("endpoint"))
    def receiver(self, delivery: Delivery) -> str:
        if delivery.endpoint.state == Endpoint.State.DELETED:
            return gettext("%(name)s (deleted)") % {"name": delivery.endpoint.url}
        return format_html('<a href="{}">{}</a>', get_change_url(delivery.endpoint), delivery.endpoint.url)

    @admin.display(description=_("body"))
    def body(self, delivery: Delivery) -> str:
        return format_json(delivery.event.body)

    @admin.action(description=_("Send again"), permissions=["change"])
    def redeliver(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        rows = [row for row in require_selection(queryset) if row.endpoint.state == Endpoint.State.ACTIVE]
        with transaction.atomic():
            deliveries = endpoints.redeliver(rows)
            self.record_action(request, rows, gettext_noop("Sent again."))
        message = ngettext(
            "The event is on its way again.", "%(count)d events are on their way again.", len(deliveries)
        )
        return self.redirect_with_message(request, message, deliveries)


def describe_attempt(attempt: Attempt, delivery: Delivery) -> dict[str, Any]:
    """The headers are those of the endpoint's current form. Signatures are not stored, so they are not shown."""
    seconds = int(attempt.started_at.timestamp())
    if delivery.endpoint.form == SignatureForm.C:
        signed = [(STANDARD_ID, str(delivery.event.uuid)), (STANDARD_TIMESTAMP, seconds)]
    else:
        signed = [(TIMESTAMP, seconds)]
    return {
        "attempt": attempt,
        "is_success": attempt.status is not None and attempt.status // 100 == 2,
        "headers": [(EVENT, delivery.event.kind), *signed],
        "outcome": attempt.status or translate_stored(attempt.error),
        "answer": decode_text(attempt.answer),
    }

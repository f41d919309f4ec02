"""The admin page of deliveries and their attempts."""

from typing import Any

from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.text import Truncator
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from library_site.admin.badges import Tone, format_badge
from library_site.admin.model_admins import OwnedAdmin, ReadOnlyAdmin
from webhooks import endpoints
from webhooks.admin.action_buttons import (
    MAX_URL_SHOWN,
    ActionButtonsAdmin,
    decode_text,
    format_json,
    get_change_url,
    render_pre,
    require_selection,
)
from webhooks.models import Attempt, Delivery, Endpoint, SignatureForm
from webhooks.signing import EVENT, STANDARD_ID, STANDARD_TIMESTAMP, TIMESTAMP

DELIVERY_TONES: dict[str, Tone] = {
    Delivery.State.WAITING: "warning",
    Delivery.State.DELIVERED: "good",
    Delivery.State.DEAD: "bad",
}


class EndpointFilter(admin.RelatedFieldListFilter):
    """Lists the newest endpoints that the user may see. The parameter in the URL can be the id of any endpoint."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        rows = Endpoint.objects.not_deleted().order_by("-pk")
        if not request.user.is_superuser:
            rows = rows.filter(owner=request.user.pk)
        return [
            (pk, Truncator(url).chars(MAX_URL_SHOWN))
            for pk, url in rows.values_list("pk", "url")[: endpoints.MAX_ENDPOINTS_PER_USER]
        ]

    def has_output(self) -> bool:
        """Otherwise Django ignores the filter in the URL."""
        return True


class AttemptInline(admin.StackedInline):
    model = Attempt
    fields = ("started_at", "milliseconds", "status", "error", "headers", "answer_text")
    readonly_fields = fields
    ordering = ("pk",)
    extra = 0
    can_delete = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        return rows.select_related("delivery__event", "delivery__endpoint").defer("delivery__event__body")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description=_("headers"))
    def headers(self, attempt: Attempt) -> str:
        """Shows the headers in the endpoint's current form. Signatures are not stored, so they are not shown."""
        delivery, seconds = attempt.delivery, int(attempt.started_at.timestamp())
        if delivery.endpoint.form == SignatureForm.C:
            signed = [(STANDARD_ID, str(delivery.event.uuid)), (STANDARD_TIMESTAMP, seconds)]
        else:
            signed = [(TIMESTAMP, seconds)]
        lines = format_html_join("\n", "{}: {}", [(EVENT, delivery.event.kind), *signed])
        return format_html("<pre>{}</pre>", lines)

    @admin.display(description=_("answer"))
    def answer_text(self, attempt: Attempt) -> str:
        return render_pre(decode_text(attempt.answer)) if attempt.answer else "-"


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin, ActionButtonsAdmin, OwnedAdmin):
    page_help = _(
        "A delivery is one event for one endpoint. If it fails, it is tried again after longer and longer times. "
        "After the last attempt it is dead: nothing more is sent unless you send it again."
    )
    owner_path = "endpoint__owner"
    allowed_lookups = ("state__exact", "endpoint__id__exact")
    list_display = ("kind", "address", "state_badge", "attempted", "created_at", "next_at", "replay")
    list_filter = ("state", ("endpoint", EndpointFilter))
    ordering = ("-pk",)
    fields = (
        *("kind", "uuid", "receiver", "state_badge", "attempted", "replay"),
        *("created_at", "next_at", "finished_at", "body"),
    )
    readonly_fields = fields
    inlines = (AttemptInline,)
    actions = ("redeliver",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("event", "endpoint").defer("event__body")

    def is_possible(self, action: str, row: Any) -> bool:
        return bool(row.endpoint.state == Endpoint.State.ACTIVE)

    @admin.display(description=_("state"))
    def state_badge(self, delivery: Delivery) -> str:
        return format_badge(delivery.get_state_display(), DELIVERY_TONES[delivery.state])

    @admin.display(description=_("event"))
    def kind(self, delivery: Delivery) -> str:
        return delivery.event.kind

    @admin.display(description=_("event's id"))
    def uuid(self, delivery: Delivery) -> str:
        return str(delivery.event.uuid)

    @admin.display(description=_("endpoint"))
    def address(self, delivery: Delivery) -> str:
        return Truncator(delivery.endpoint.url).chars(MAX_URL_SHOWN)

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
        message = gettext("Deliveries sent again: %(count)d, to active endpoints.") % {"count": len(deliveries)}
        return self.redirect_with_message(request, message, deliveries)

"""The admin page of endpoints: their health, state, secrets and replays."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.text import Truncator

from library_site.admin.badges import Tone, format_badge
from library_site.admin.model_admins import OwnedAdmin
from library_site.http.refusals import Refusal
from webhooks import endpoints
from webhooks.admin.action_buttons import (
    MAX_URL_SHOWN,
    ActionButtonsAdmin,
    format_time,
    get_change_url,
    require_one,
    require_selection,
)
from webhooks.admin.forms import EndpointForm, ReplayForm
from webhooks.admin.health import RECENT_DELIVERIES, annotate_health
from webhooks.models import EVENT_RETENTION, Endpoint, EndpointSecret

NARROWER = " Choose fewer events, a later start or an earlier end; you can replay the rest afterwards."
REPLAY_ADVICE: dict[type[Refusal], str] = {
    endpoints.TooManyEvents: NARROWER,
    endpoints.TooManyWaiting: NARROWER,
    endpoints.EndpointDisabled: " Enable it on its page.",
}
STATE_TONES: dict[str, Tone] = {Endpoint.State.ACTIVE: "good", Endpoint.State.DISABLED: "warning"}


class StateFilter(admin.ChoicesFieldListFilter):
    def choices(self, changelist: Any) -> Iterator[Any]:
        """Deleted endpoints are not listed, so their state is no choice."""
        return (choice for choice in super().choices(changelist) if choice["display"] != Endpoint.State.DELETED.label)


@admin.register(Endpoint)
class EndpointAdmin(ActionButtonsAdmin, OwnedAdmin):
    owner_path = "owner"
    form = EndpointForm
    allowed_lookups = ("state__exact",)
    list_display = (
        "address",
        "state_badge",
        "delivered_count",
        "failing_count",
        "last_answer",
        "owner",
        "made_by",
        "kinds",
        "description",
    )
    list_filter = (("state", StateFilter),)
    list_select_related = ("owner", "maker", "authorization__application")
    list_per_page = 50
    search_fields = ("url", "description", "owner__username")
    ordering = ("-pk",)
    raw_id_fields = ("owner",)
    radio_fields = {"form": admin.VERTICAL}
    actions = ("ping", "disable", "enable", "rotate", "promote")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return annotate_health(super().get_queryset(request).exclude(state=Endpoint.State.DELETED))

    def is_possible(self, action: str, row: Any) -> bool:
        if action == "promote":
            return bool(row.secrets.filter(state=EndpointSecret.State.PENDING).exists())
        required_states = {"ping": "active", "disable": "active", "enable": "disabled"}
        return bool(row.state == required_states.get(action, row.state))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        owner = ["owner"] if request.user.is_superuser else []
        fields = ["url", "kinds", "form", "description", "in_flight_limit", *owner]
        return [*fields, *self.get_readonly_fields(request, obj)]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("state_badge", "reason", "made_by", "expires_at", "health", "secrets_note", "created_at") if obj else ()

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"owner": str(request.user.pk)}

    @admin.display(description="state")
    def state_badge(self, endpoint: Endpoint) -> str:
        return format_badge(endpoint.get_state_display(), STATE_TONES[endpoint.state])

    @admin.display(description="URL")
    def address(self, endpoint: Endpoint) -> str:
        return Truncator(endpoint.url).chars(MAX_URL_SHOWN)

    @admin.display(description="made by")
    def made_by(self, endpoint: Endpoint) -> str:
        if endpoint.authorization:
            return str(endpoint.authorization.application or "A deleted app")
        return f"API key {endpoint.maker.name}" if endpoint.maker else "-"

    @admin.display(description=f"delivered, of {RECENT_DELIVERIES}")
    def delivered_count(self, endpoint: Any) -> int:
        return int(endpoint.delivered)

    @admin.display(description="failing")
    def failing_count(self, endpoint: Any) -> int:
        return int(endpoint.failing)

    @admin.display(description="last answer")
    def last_answer(self, endpoint: Any) -> str:
        return f"{format_time(endpoint.last_answer_at)}: {endpoint.last_answer}" if endpoint.last_answer_at else "-"

    def health(self, endpoint: Any) -> str:
        recent = f"Of the last {RECENT_DELIVERIES} deliveries"
        counts = f"{recent} {endpoint.delivered} were delivered and {endpoint.failing} fail."
        return f"{counts} Last answer: {self.last_answer(endpoint)}."

    @admin.display(description="secrets")
    def secrets_note(self, endpoint: Endpoint) -> str:
        notes = [f"{secret.state} since {format_time(secret.created_at)}" for secret in endpoint.secrets.order_by("pk")]
        return f"{', '.join(notes) or 'None'}. Neither is shown again. A new one waits until it is promoted."

    def get_links(self, request: HttpRequest, obj: Any) -> dict[str, str]:
        if not obj:
            return {}
        deliveries = f"{reverse('admin:webhooks_delivery_changelist')}?endpoint__id__exact={obj.pk}"
        replay = reverse("admin:webhooks_endpoint_replay", args=[obj.pk])
        return {deliveries: "Deliveries", **({replay: "Replay"} if self.has_change_permission(request, obj) else {})}

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Runs in the transaction of Django's own view. Raises TooManyEndpoints."""
        values = {"owner": request.user, **form.cleaned_data}
        if change:
            endpoints.change_endpoint(obj, {name: values[name] for name in form.changed_data})
        else:
            endpoint, obj.new_secret = endpoints.create_endpoint(values.pop("owner"), values, None, timezone.now())
            obj.pk = endpoint.pk

    def add_view(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        try:
            return super().add_view(request, *arguments, **options)
        except endpoints.TooManyEndpoints:
            message = f"No endpoint was made: {endpoints.MAX_ENDPOINTS_PER_USER} are there already; delete one first."
            self.message_user(request, message, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def response_add(self, request: HttpRequest, obj: Any, *arguments: Any, **options: Any) -> HttpResponse:
        return self.show_once(request, obj, {"Secret": obj.new_secret})

    def delete_model(self, request: HttpRequest, obj: Endpoint) -> None:
        endpoints.delete_endpoint(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> None:
        with transaction.atomic():
            for endpoint in list(queryset):
                endpoints.delete_endpoint(endpoint)

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Lists each endpoint; Django would list every delivery too."""
        lines = [f"{endpoint}: is sent nothing more, not even what waits" for endpoint in objs]
        return lines, {str(self.opts.verbose_name_plural): len(lines)}, set(), []

    @admin.action(description="Ping", permissions=["change"])
    def ping(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        active = [row for row in require_selection(queryset) if row.state == Endpoint.State.ACTIVE]
        with transaction.atomic():
            pings = endpoints.ping(active, timezone.now())
            self.record_action(request, active, "Pinged.")
        return self.redirect_with_message(request, f"Pings on their way: {len(pings)}, to active endpoints.", pings)

    @admin.action(description="Disable", permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        return self.set_state(request, queryset, Endpoint.State.DISABLED)

    @admin.action(description="Enable", permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        return self.set_state(request, queryset, Endpoint.State.ACTIVE)

    def set_state(self, request: HttpRequest, queryset: QuerySet[Any], state: Endpoint.State) -> HttpResponse | None:
        rows = require_selection(queryset)
        with transaction.atomic():
            for endpoint in rows:
                endpoints.change_endpoint(endpoint, {"state": state})
            self.record_action(request, rows, f"Made {state.label.lower()}.")
        return self.redirect_with_message(request, f"Endpoints now {state.label.lower()}: {len(rows)}.", rows)

    @admin.action(description="Make a new secret", permissions=["change"])
    def rotate(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Takes one endpoint. The active secret signs until the new one is promoted."""
        endpoint = require_one(queryset)
        with transaction.atomic():
            secret = endpoints.add_secret(endpoint, None, timezone.now())
            self.record_action(request, [endpoint], "Made a new secret, which is pending.")
        return self.show_once(request, endpoint, {"Pending secret": secret})

    @admin.action(description="Promote the pending secret", permissions=["change"])
    def promote(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        endpoint = require_one(queryset)
        try:
            with transaction.atomic():
                endpoints.promote_secret(endpoint)
                self.record_action(request, [endpoint], "Promoted the pending secret.")
        except endpoints.NoPendingSecret:
            self.message_user(request, "Nothing was changed: no secret is pending.", messages.ERROR)
            return HttpResponseRedirect(get_change_url(endpoint))
        return self.redirect_with_message(request, "The pending secret signs from now on.", [endpoint])

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.replay_view)
        return [path("<path:object_id>/replay/", view, name="webhooks_endpoint_replay"), *super().get_urls()]

    def replay_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        endpoint = self.get_object(request, unquote(object_id))
        if not self.has_change_permission(request, endpoint):
            raise PermissionDenied
        if endpoint is None:
            self.message_user(request, "The endpoint does not exist.", messages.WARNING)
            return HttpResponseRedirect(reverse("admin:webhooks_endpoint_changelist"))
        now = timezone.now()
        form = ReplayForm(request.POST or None, initial={"after": now - timedelta(days=1)})
        if form.is_valid() and self.replay(request, endpoint, form, now):
            return HttpResponseRedirect(get_change_url(endpoint))
        context = {
            **self.admin_site.each_context(request),
            "title": "Replay",
            "opts": self.opts,
            "object": endpoint,
            "form": form,
            "kept_for": EVENT_RETENTION,
        }
        return TemplateResponse(request, "admin/webhooks/replay.html", context)

    def replay(self, request: HttpRequest, endpoint: Any, form: ReplayForm, now: datetime) -> bool:
        """Returns false if it is refused; the form says why."""
        try:
            with transaction.atomic():
                count = endpoints.replay_events(endpoint, **form.cleaned_data, now=now)
                self.record_action(request, [endpoint], f"Replayed events: {count}.")
        except Refusal as error:
            form.add_error(None, f"Nothing was replayed. {error.message}.{REPLAY_ADVICE.get(type(error), '')}")
            return False
        self.message_user(request, f"Events on their way again: {count}.", messages.SUCCESS)
        return True

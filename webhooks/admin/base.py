"""The desk for endpoints, what became of each delivery, and what others send. Only a secret's making shows it."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.text import Truncator
from django.views.decorators.debug import sensitive_post_parameters

from library_site.admin.base import DeskAdmin, OwnersAdmin, ReadOnlyAdmin
from webhooks import endpoints, inbox, outbox, replaying
from webhooks.admin.forms import EndpointForm, ReplayForm, SourceForm
from webhooks.admin.health import RECENT, with_health
from webhooks.models import KEPT_FOR, Attempt, Delivery, Endpoint, Received, Source, SourceSecret
from webhooks.signing import EVENT, TIMESTAMP

# So many a selection may have: each is locked, changed and logged on its own.
MOST = 1_000
# Characters of a URL in a list.
SHOWN = 40


class SelectionRefused(Exception):
    """The action takes fewer, or just one."""


class ButtonsAdmin(DeskAdmin):
    """Has its actions also as buttons on the page of a row."""

    change_form_template = "admin/webhooks/change_form.html"
    sortable_by = ()

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *arguments: Any, **options: Any
    ) -> HttpResponse:
        actions = self.get_action_choices(request, default_choices=[])
        buttons = {name: words for name, words in actions if name != "delete_selected"}
        context |= {"buttons": buttons, "pages": self.pages(request, context.get("original"))}
        return super().render_change_form(request, context, *arguments, **options)

    def pages(self, request: HttpRequest, obj: Any) -> dict[str, str]:
        """Others that belong to the row, by address."""
        return {}

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any], *_: Any) -> HttpResponse | None:
        try:
            return super().response_action(request, queryset)
        except SelectionRefused as error:
            self.message_user(request, f"Nothing was changed: {error}.", messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def done(self, request: HttpRequest, words: str, rows: Sequence[Any]) -> HttpResponse | None:
        """To the page of the row, if it is one, else back to the list."""
        self.message_user(request, words, messages.SUCCESS if rows else messages.WARNING)
        return HttpResponseRedirect(page_of(rows[0])) if len(rows) == 1 else None


class StatesFilter(admin.ChoicesFieldListFilter):
    def choices(self, changelist: Any) -> Iterator[Any]:
        """Deleted ones are not listed."""
        return (choice for choice in super().choices(changelist) if choice["display"] != Endpoint.State.DELETED.label)


@admin.register(Endpoint)
class EndpointAdmin(ButtonsAdmin, OwnersAdmin):
    owner = "owner"
    form = EndpointForm
    lookups = ("state__exact",)
    list_display = ("address", "state", "delivered", "failing", "answered", "owner", "kinds", "description")
    list_filter = (("state", StatesFilter),)
    list_select_related = ("owner",)
    list_per_page = 50
    search_fields = ("url", "description", "owner__username")
    ordering = ("-pk",)
    raw_id_fields = ("owner",)
    radio_fields = {"form": admin.VERTICAL}
    actions = ("ping", "disable", "enable", "rotate", "promote")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return with_health(super().get_queryset(request).exclude(state=Endpoint.State.DELETED))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        owner = ["owner"] if request.user.is_superuser else []
        asked = ["url", "kinds", "form", "description", "in_flight_limit", *owner]
        return [*asked, *self.get_readonly_fields(request, obj)]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("state", "reason", "health", "secrets_kept", "created_at") if obj else ()

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"owner": str(request.user.pk)}

    @admin.display(description="URL")
    def address(self, endpoint: Endpoint) -> str:
        return Truncator(endpoint.url).chars(SHOWN)

    @admin.display(description=f"delivered, of {RECENT}")
    def delivered(self, endpoint: Any) -> int:
        return int(endpoint.delivered)

    @admin.display(description="failing")
    def failing(self, endpoint: Any) -> int:
        return int(endpoint.failing)

    @admin.display(description="last answer")
    def answered(self, endpoint: Any) -> str:
        return f"{moment(endpoint.last_answer_at)}: {endpoint.last_answer}" if endpoint.last_answer_at else "-"

    def health(self, endpoint: Any) -> str:
        counts = f"Of the last {RECENT} deliveries {endpoint.delivered} were delivered and {endpoint.failing} fail."
        return f"{counts} Last answer: {self.answered(endpoint)}."

    @admin.display(description="secrets")
    def secrets_kept(self, endpoint: Endpoint) -> str:
        kept = [f"{secret.state} since {moment(secret.created_at)}" for secret in endpoint.secrets.order_by("pk")]
        return f"{', '.join(kept) or 'None'}. Neither is shown again. A new one waits until it is promoted."

    def pages(self, request: HttpRequest, obj: Any) -> dict[str, str]:
        if not obj:
            return {}
        deliveries = f"{reverse('admin:webhooks_delivery_changelist')}?endpoint__id__exact={obj.pk}"
        replay = reverse("admin:webhooks_endpoint_replay", args=[obj.pk])
        return {deliveries: "Deliveries", **({replay: "Replay"} if self.has_change_permission(request, obj) else {})}

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Inside the transaction that Django's own view has opened. Raises TooManyEndpoints."""
        given = {"owner": request.user, **form.cleaned_data}
        if change:
            endpoints.change(obj, {name: given[name] for name in form.changed_data})
        else:
            made, obj.new_secret = endpoints.add(given.pop("owner"), given, None, timezone.now())
            obj.pk = made.pk

    def add_view(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        try:
            return super().add_view(request, *arguments, **options)
        except endpoints.TooManyEndpoints:
            words = f"No endpoint was made: {endpoints.MOST} are there already; delete one first."
            self.message_user(request, words, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def response_add(self, request: HttpRequest, obj: Any, *arguments: Any, **options: Any) -> HttpResponse:
        return self.told_once(request, obj, {"Secret": obj.new_secret})

    def delete_model(self, request: HttpRequest, obj: Endpoint) -> None:
        endpoints.remove(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> None:
        with transaction.atomic():
            for endpoint in list(queryset):
                endpoints.remove(endpoint)

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Each endpoint, where Django would list every delivery."""
        lines = [f"{endpoint}: is sent nothing more, not even what waits" for endpoint in objs]
        return lines, {str(self.opts.verbose_name_plural): len(lines)}, set(), []

    @admin.action(description="Ping", permissions=["change"])
    def ping(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        active = [row for row in selected(queryset) if row.state == Endpoint.State.ACTIVE]
        with transaction.atomic():
            made = [outbox.ping(endpoint, timezone.now()) for endpoint in active]
            self.note(request, active, "Pinged.")
        return self.done(request, f"Pings on their way: {len(made)}, to active endpoints.", made)

    @admin.action(description="Disable", permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        return self.turned(request, queryset, Endpoint.State.DISABLED)

    @admin.action(description="Enable", permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        return self.turned(request, queryset, Endpoint.State.ACTIVE)

    def turned(self, request: HttpRequest, queryset: QuerySet[Any], state: Endpoint.State) -> HttpResponse | None:
        rows = selected(queryset)
        with transaction.atomic():
            for endpoint in rows:
                endpoints.change(endpoint, {"state": state})
            self.note(request, rows, f"Made {state.label.lower()}.")
        return self.done(request, f"Endpoints now {state.label.lower()}: {len(rows)}.", rows)

    @admin.action(description="Make a new secret", permissions=["change"])
    def rotate(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """For one at a time. The old one signs until this one is promoted."""
        endpoint = only(queryset)
        with transaction.atomic():
            secret = endpoints.add_secret(endpoint, None, timezone.now())
            self.note(request, [endpoint], "Made a new secret, which is pending.")
        return self.told_once(request, endpoint, {"Pending secret": secret})

    @admin.action(description="Promote the pending secret", permissions=["change"])
    def promote(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        endpoint = only(queryset)
        try:
            with transaction.atomic():
                endpoints.promote(endpoint)
                self.note(request, [endpoint], "Promoted the pending secret.")
        except endpoints.NoPendingSecret:
            self.message_user(request, "Nothing was changed: no secret is pending.", messages.ERROR)
            return HttpResponseRedirect(page_of(endpoint))
        return self.done(request, "The pending secret signs from now on.", [endpoint])

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
        if form.is_valid():
            return self.replayed(request, endpoint, form.cleaned_data, now)
        context = {
            **self.admin_site.each_context(request),
            "title": "Replay",
            "opts": self.opts,
            "object": endpoint,
            "form": form,
            "kept_for": KEPT_FOR,
        }
        return TemplateResponse(request, "admin/webhooks/replay.html", context)

    def replayed(self, request: HttpRequest, endpoint: Any, span: dict[str, Any], now: datetime) -> HttpResponse:
        try:
            endpoints.require_active(endpoint)
        except endpoints.EndpointDisabled:
            self.message_user(request, "Nothing was replayed: the endpoint is disabled.", messages.ERROR)
            return HttpResponseRedirect(page_of(endpoint))
        try:
            with transaction.atomic():
                count = replaying.replay(endpoint, **span, now=now)
                self.note(request, [endpoint], f"Replayed events: {count}.")
            self.message_user(request, f"Events on their way again: {count}.", messages.SUCCESS)
        except replaying.TooManyEvents:
            words = f"Nothing was replayed: more than {replaying.MOST:,} events are meant."
            self.message_user(request, words, messages.ERROR)
        return HttpResponseRedirect(page_of(endpoint))


class EndpointsFilter(admin.RelatedFieldListFilter):
    """Names the endpoints that a person sees, the newest of them; an address can name any."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        kept = Endpoint.objects.kept().order_by("-pk")
        seen = kept if request.user.is_superuser else kept.filter(owner=request.user.pk)
        return [(pk, Truncator(url).chars(SHOWN)) for pk, url in seen.values_list("pk", "url")[: endpoints.MOST]]

    def has_output(self) -> bool:
        """Else Django would pass over what an address asks for."""
        return True


class AttemptInline(admin.StackedInline):
    model = Attempt
    fields = ("started_at", "milliseconds", "status", "error", "headers", "beginning")
    readonly_fields = fields
    ordering = ("pk",)
    extra = 0
    can_delete = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("delivery__event").defer("delivery__event__body")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description="headers")
    def headers(self, attempt: Attempt) -> str:
        """The signature is not kept."""
        kind, seconds = attempt.delivery.event.kind, int(attempt.started_at.timestamp())
        return format_html("<pre>{}: {}\n{}: {}</pre>", EVENT, kind, TIMESTAMP, seconds)

    @admin.display(description="answer")
    def beginning(self, attempt: Attempt) -> str:
        return preformatted(text(attempt.answer)) if attempt.answer else "-"


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin, ButtonsAdmin, OwnersAdmin):
    owner = "endpoint__owner"
    lookups = ("state__exact", "endpoint__id__exact")
    list_display = ("kind", "address", "state", "attempted", "created_at", "next_at", "replay")
    list_filter = ("state", ("endpoint", EndpointsFilter))
    ordering = ("-pk",)
    fields = (
        *("kind", "uuid", "receiver", "state", "attempted", "replay"),
        *("created_at", "next_at", "finished_at", "body"),
    )
    readonly_fields = fields
    inlines = (AttemptInline,)
    actions = ("send_again",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("event", "endpoint").defer("event__body")

    @admin.display(description="event")
    def kind(self, delivery: Delivery) -> str:
        return delivery.event.kind

    @admin.display(description="event's id")
    def uuid(self, delivery: Delivery) -> str:
        return str(delivery.event.uuid)

    @admin.display(description="endpoint")
    def address(self, delivery: Delivery) -> str:
        return Truncator(delivery.endpoint.url).chars(SHOWN)

    @admin.display(description="endpoint")
    def receiver(self, delivery: Delivery) -> str:
        if delivery.endpoint.state == Endpoint.State.DELETED:
            return f"{delivery.endpoint.url} (deleted)"
        return format_html('<a href="{}">{}</a>', page_of(delivery.endpoint), delivery.endpoint.url)

    def body(self, delivery: Delivery) -> str:
        return pretty(delivery.event.body)

    @admin.action(description="Send again", permissions=["change"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        rows = [row for row in selected(queryset) if row.endpoint.state == Endpoint.State.ACTIVE]
        # In one order for all: two who do it at once would wait for each other for ever.
        fit = sorted(rows, key=in_locking_order)
        with transaction.atomic():
            made = [replaying.redeliver(delivery) for delivery in fit]
            self.note(request, fit, "Sent again.")
        return self.done(request, f"Deliveries sent again: {len(made)}, to active endpoints.", made)


class SourceSecretInline(admin.TabularInline):
    model = SourceSecret
    verbose_name_plural = "secrets, each of which is accepted"
    fields = ("created_at",)
    readonly_fields = fields
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
class SourceAdmin(ButtonsAdmin):
    form = SourceForm
    lookups = ("enabled__exact",)
    list_display = ("name", "form", "enabled", "mirrors", "created_at")
    list_filter = ("enabled",)
    search_fields = ("name",)
    ordering = ("name",)
    radio_fields = {"form": admin.VERTICAL}
    inlines = (SourceSecretInline,)
    actions = ("make_new_secret",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        asked = ["name", "form", "enabled", "mirrors"]
        secret = ["secret"] if self.has_change_permission(request, obj) or obj is None else []
        return [*asked, *secret, *self.get_readonly_fields(request, obj)]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("address", "created_at") if obj else ()

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {}

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """All that it sent would go with it: one that is over is disabled."""
        return False

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj else ()

    def address(self, source: Source) -> str:
        return settings.PUBLIC_URL + reverse("webhooks:receive", kwargs={"source": source.name})

    @method_decorator(sensitive_post_parameters("secret"))
    def changeform_view(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        return super().changeform_view(request, *arguments, **options)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Inside the transaction that Django's own view has opened."""
        now, given = timezone.now(), form.cleaned_data["secret"]
        if not change:
            obj.created_at = now
        super().save_model(request, obj, form, change)
        if given or not change:
            obj.new_secret = inbox.add_secret(obj, given, now)

    def response_add(self, request: HttpRequest, obj: Any, *arguments: Any, **options: Any) -> HttpResponse:
        if request.POST.get("secret"):
            return super().response_add(request, obj, *arguments, **options)
        return self.told_once(request, obj, {"Secret": obj.new_secret})

    @admin.action(description="Make a new secret", permissions=["change"])
    def make_new_secret(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """For one at a time. Those before are accepted until they are deleted."""
        source = only(queryset)
        with transaction.atomic():
            secret = inbox.add_secret(source, None, timezone.now())
            self.note(request, [source], "Made a new secret.")
        return self.told_once(request, source, {"Secret": secret})


@admin.register(Received)
class ReceivedAdmin(ReadOnlyAdmin, ButtonsAdmin):
    lookups = ("state__exact", "source__id__exact")
    list_display = ("kind", "event_id", "source", "state", "attempted", "received_at", "next_at")
    list_filter = ("state", "source")
    ordering = ("-pk",)
    fields = (
        *("kind", "event_id", "source", "state", "attempted", "received_at"),
        *("next_at", "finished_at", "error", "content"),
    )
    readonly_fields = fields
    actions = ("work_off_again",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("source").defer("body")

    @admin.display(description="body")
    def content(self, received: Received) -> str:
        return pretty(received.body)

    @admin.action(description="Work off again", permissions=["change"])
    def work_off_again(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        dead = [row for row in selected(queryset) if row.state == Received.State.DEAD]
        with transaction.atomic():
            revived = inbox.revive(Received.objects.filter(pk__in=[row.pk for row in dead]))
            self.note(request, dead, "Worked off again.")
        return self.done(request, f"Dead events to be worked off again: {revived}.", dead)


def selected(queryset: QuerySet[Any]) -> list[Any]:
    """Raises SelectionRefused."""
    rows = list(queryset[: MOST + 1])
    if len(rows) > MOST:
        raise SelectionRefused(f"select {MOST:,} at most")
    return rows


def only(queryset: QuerySet[Any]) -> Any:
    """Raises SelectionRefused."""
    rows = list(queryset[:2])
    if len(rows) != 1:
        raise SelectionRefused("select one")
    return rows[0]


def in_locking_order(delivery: Delivery) -> tuple[int, int]:
    return delivery.endpoint_id, delivery.pk


def page_of(row: Any) -> str:
    return reverse(f"admin:webhooks_{row._meta.model_name}_change", args=[row.pk])


def moment(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def text(sent: Any) -> str:
    """Anybody may send anything; a page holds no NUL."""
    return bytes(sent).decode(errors="replace").replace("\0", "\ufffd")


def pretty(body: Any) -> str:
    """JSON for people, or as it came where it nests too deep."""
    try:
        return preformatted(text(msgspec.json.format(bytes(body), indent=2)))
    except (msgspec.DecodeError, RecursionError):
        return preformatted(text(body))


def preformatted(words: str) -> str:
    return format_html("<pre>{}</pre>", words)

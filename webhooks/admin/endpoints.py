"""The admin page of endpoints: their health, state, secrets and replays."""

from collections.abc import Iterator
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
from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext, gettext_noop, ngettext
from django.utils.translation import gettext_lazy as _

from library_site.admin.badges import format_badge
from library_site.admin.model_admins import DescribedDeletionMixin, OwnedAdmin
from library_site.admin.moments import format_age, format_moment, moment_column
from library_site.admin.stored_texts import translate_stored
from library_site.http.api_errors import APIError
from webhooks import endpoints
from webhooks.admin.forms import EndpointForm, ReplayForm, describe_key
from webhooks.admin.health import annotate_health
from webhooks.admin.model_admins import (
    TONES,
    SelectionAdmin,
    get_change_url,
    require_one,
    require_selection,
    shorten_url,
)
from webhooks.models import EVENT_RETENTION, Endpoint, EndpointSecret
from webhooks.registry import ALL_KINDS

NARROWER = _("Choose fewer events, a later start or an earlier end; you can replay the rest afterwards.")
REPLAY_ADVICE: dict[type[APIError], Any] = {
    endpoints.TooManyEvents: NARROWER,
    endpoints.TooManyWaiting: NARROWER,
    endpoints.EndpointDisabled: _("Enable it on its page."),
}
STATE_RECORDS = {
    Endpoint.State.ACTIVE: gettext_noop("Made active."),
    Endpoint.State.DISABLED: gettext_noop("Made disabled."),
}


class StateFilter(admin.ChoicesFieldListFilter):
    def choices(self, changelist: Any) -> Iterator[Any]:
        """Leaves out the state of deleted endpoints, which are not listed."""
        return (choice for choice in super().choices(changelist) if choice["display"] != Endpoint.State.DELETED.label)


@admin.register(Endpoint)
class EndpointAdmin(DescribedDeletionMixin, SelectionAdmin, OwnedAdmin):
    page_help = _(
        "An endpoint is the address of another program that is told what happens in the library. Each event is "
        "signed with the secret of the endpoint, so that the program knows that the library sent it. There are "
        "three forms of signatures: forms B and C also sign the time, so that nobody can send an old event again, "
        "and form C is that of Standard Webhooks, which many programs know already. To "
        "replay is to send past events once more, for example after the program was out of order. A new secret is "
        "pending until you promote it, so that the program can learn it first."
    )
    owner_path = "owner"
    form = EndpointForm
    allowed_lookups = ("state__exact",)
    empty_sentence = _("No program is told yet what happens in the library.")
    add_label = _("Add an endpoint")
    list_display = ("address", "state_badge", "outcome", "events", "owner")
    list_filter = (("state", StateFilter),)
    list_select_related = ("owner",)
    search_fields = ("url", "description", "owner__username")
    search_help_text = _("URL, description or owner")
    ordering = ("-pk",)
    radio_fields = {"form": admin.VERTICAL}
    actions = ("ping", "disable", "enable", "rotate", "promote")
    actions_for_one = ("rotate", "promote")
    end = moment_column("expires_at", _("ends"))
    start = moment_column("created_at", _("added"))

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
        # What happens comes first.
        return [*self.list_happenings(obj), *fields, "secrets_note", "start"] if obj else fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return (*self.list_happenings(obj), "secrets_note", "start") if obj else ()

    def list_happenings(self, obj: Any) -> list[str]:
        """Leaves out what has no value."""
        optional = {"reason_text": obj.reason, "made_by": obj.creator or obj.authorization, "end": obj.expires_at}
        return ["state_badge", *(name for name, value in optional.items() if value), "outcome"]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"owner": request.user.pk}

    @admin.display(description=_("reason"))
    def reason_text(self, endpoint: Endpoint) -> str:
        return translate_stored(endpoint.reason)

    @admin.display(description=_("URL"))
    def address(self, endpoint: Endpoint) -> str:
        description = (
            format_html(' <span class="quiet">{}</span>', endpoint.description) if endpoint.description else ""
        )
        return format_html("{}{}", shorten_url(endpoint.url), description)

    @admin.display(description=_("made by"))
    def made_by(self, endpoint: Endpoint) -> str:
        if endpoint.authorization:
            return str(endpoint.authorization.application or gettext("A deleted app"))
        return gettext("API key %(name)s") % {"name": endpoint.creator.name} if endpoint.creator else ""

    @admin.display(description=_("events"))
    def events(self, endpoint: Endpoint) -> str:
        return gettext("All") if endpoint.kinds == ALL_KINDS else ", ".join(endpoint.kinds.split())

    @admin.display(description=_("last deliveries"))
    def outcome(self, endpoint: Any) -> str:
        """Counts the last RECENT_DELIVERIES."""
        if not endpoint.delivered and not endpoint.failing:
            return gettext("Nothing sent yet.")
        counts = gettext("%(delivered)d delivered, %(failing)d failing.")
        text = counts % {"delivered": endpoint.delivered, "failing": endpoint.failing}
        if not endpoint.last_answer_at:
            return text
        last = endpoint.last_answer
        is_status = last.isdecimal()
        last = gettext("The last answer was %(status)s.") % {"status": last} if is_status else translate_stored(last)
        age = format_age(endpoint.last_answer_at, timezone.now())
        return format_html('{} {} <span class="quiet">{}</span>', text, last, age)

    @admin.display(description=_("secrets"))
    def secrets_note(self, endpoint: Endpoint) -> str:
        secrets = [
            (format_badge(secret.get_state_display(), TONES[secret.state]), format_moment(secret.created_at))
            for secret in endpoint.secrets.order_by("pk")
        ]
        lines = format_html_join("", "<li>{} {}</li>", secrets)
        advice = ""
        if endpoint.secrets.filter(state=EndpointSecret.State.PENDING).exists():
            advice = gettext("Promote the pending one when the receiver knows it too. In form C both sign until then.")
        return format_html('<ul class="plain-list">{}</ul>{}', lines, advice)

    def get_links(self, request: HttpRequest, row: Any) -> dict[str, str]:
        deliveries = f"{reverse('admin:webhooks_delivery_changelist')}?endpoint__id__exact={row.pk}"
        replay = reverse("admin:webhooks_endpoint_replay", args=[row.pk])
        return {
            deliveries: gettext("Deliveries"),
            **({replay: gettext("Replay")} if self.has_change_permission(request, row) else {}),
        }

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Runs in the transaction of Django's view. Raises TooManyEndpoints."""
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
            message = gettext("No endpoint was made: %(count)d are there already; delete one first.")
            self.message_user(request, message % {"count": endpoints.MAX_ENDPOINTS_PER_USER}, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def response_add(self, request: HttpRequest, obj: Any, *arguments: Any, **options: Any) -> HttpResponse:
        return self.show_once(request, obj, {gettext("Secret"): obj.new_secret}, describe_key(obj.form))

    def delete_model(self, request: HttpRequest, obj: Endpoint) -> None:
        endpoints.delete_endpoint(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> None:
        with transaction.atomic():
            for endpoint in list(queryset):
                endpoints.delete_endpoint(endpoint)

    def describe_deletion(self, obj: Endpoint) -> str:
        return gettext("%(endpoint)s: is sent nothing more, not even what waits") % {"endpoint": obj}

    @admin.action(description=_("Ping"), permissions=["change"])
    def ping(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        active = [row for row in require_selection(queryset) if row.state == Endpoint.State.ACTIVE]
        with transaction.atomic():
            pings = endpoints.ping(active, timezone.now())
            self.record_action(request, active, gettext_noop("Pinged."))
        message = ngettext("The ping is on its way.", "%(count)d pings are on their way.", len(pings))
        return self.redirect_with_message(request, message, pings)

    @admin.action(description=_("Disable"), permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        return self.set_state(request, queryset, Endpoint.State.DISABLED)

    @admin.action(description=_("Enable"), permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        return self.set_state(request, queryset, Endpoint.State.ACTIVE)

    def set_state(self, request: HttpRequest, queryset: QuerySet[Any], state: Endpoint.State) -> HttpResponse | None:
        rows = require_selection(queryset)
        with transaction.atomic():
            for endpoint in rows:
                endpoints.change_endpoint(endpoint, {"state": state})
            self.record_action(request, rows, STATE_RECORDS[state])
        if state == Endpoint.State.ACTIVE:
            message = ngettext("The endpoint is active.", "%(count)d endpoints are active.", len(rows))
        else:
            message = ngettext("The endpoint is disabled.", "%(count)d endpoints are disabled.", len(rows))
        return self.redirect_with_message(request, message, rows)

    @admin.action(description=_("Make a new secret"), permissions=["change"])
    def rotate(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """For one endpoint only. The active secret signs until the new one is promoted."""
        endpoint = require_one(queryset)
        with transaction.atomic():
            secret = endpoints.add_endpoint_secret(endpoint, None, timezone.now())
            self.record_action(request, [endpoint], gettext_noop("Made a new secret, which is pending."))
        return self.show_once(request, endpoint, {gettext("Pending secret"): secret}, describe_key(endpoint.form))

    @admin.action(description=_("Promote the pending secret"), permissions=["change"])
    def promote(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        endpoint = require_one(queryset)
        try:
            with transaction.atomic():
                endpoints.promote_secret(endpoint)
                self.record_action(request, [endpoint], gettext_noop("Promoted the pending secret."))
        except endpoints.NoPendingSecret:
            self.message_user(request, gettext("Nothing was changed: no secret is pending."), messages.ERROR)
            return HttpResponseRedirect(get_change_url(endpoint))
        return self.redirect_with_message(request, gettext("The pending secret signs from now on."), [endpoint])

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.replay_view)
        return [path("<path:object_id>/replay/", view, name="webhooks_endpoint_replay"), *super().get_urls()]

    def replay_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        endpoint = self.get_object(request, unquote(object_id))
        if not self.has_change_permission(request, endpoint):
            raise PermissionDenied
        if endpoint is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        now = timezone.now()
        form = ReplayForm(request.POST or None, initial={"after": now - timedelta(days=1)})
        question = None
        if form.is_valid():
            span = form.read_span(now)
            try:
                with transaction.atomic():
                    _events, total = endpoints.lock_for_replay(endpoint, **span, now=now)
                    question = build_question(total, span) if total else None
                    if question and request.POST.get("confirmed") == question["token"]:
                        return self.replay(request, endpoint, span, now)
                if question:
                    form = ReplayForm(initial={**span, "kinds": span["kinds"].split()})
                else:
                    form.add_error(None, gettext("Nothing was replayed. No event is of this time and kind."))
            except APIError as error:
                form.add_error(None, describe_refusal(error))
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Replay"),
            "opts": self.opts,
            "object": endpoint,
            "form": form,
            "question": question,
            "kept_for": EVENT_RETENTION,
        }
        return TemplateResponse(request, "admin/webhooks/replay.html", context)

    def replay(self, request: HttpRequest, endpoint: Any, span: dict[str, Any], now: datetime) -> HttpResponse:
        count = endpoints.replay_events(endpoint, **span, now=now)
        self.record_action(request, [endpoint], gettext_noop("Replayed events: %(count)s.") % {"count": count})
        message = ngettext("The event is on its way again.", "%(count)d events are on their way again.", count)
        self.message_user(request, message % {"count": count}, messages.SUCCESS)
        return HttpResponseRedirect(get_change_url(endpoint))


def build_question(total: int, span: dict[str, Any]) -> dict[str, Any]:
    """Returns the number of events in a replay, and the values that its confirmation must repeat."""
    # In one zone: the form parses times in the user's zone, but the default end, now, is in UTC.
    times = f"{span['after'].timestamp()} {span['before'].timestamp()}"
    return {"total": total, "token": f"{total} {times} {span['kinds']}"}


def describe_refusal(error: APIError) -> str:
    if isinstance(error, endpoints.TooManyEvents):
        count = number_format(endpoints.MAX_REPLAYED_EVENTS, force_grouping=True)
        reason = gettext("These are more than %(count)s events.") % {"count": count}
    elif isinstance(error, endpoints.EndpointDisabled):
        reason = gettext("The endpoint is disabled.")
    else:
        reason = f"{gettext(error.default_detail)}."
    # xgettext does not parse f-strings.
    nothing = gettext("Nothing was replayed.")
    return f"{nothing} {reason} {REPLAY_ADVICE.get(type(error), '')}"

"""The base of this app's admin pages: badges of states, selections, bodies and times."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from library_site.admin.badges import Tone, format_badge
from library_site.admin.model_admins import BaseAdmin
from library_site.admin.moments import format_age
from library_site.http.api_errors import APIError

# The largest selection: each row is locked, changed and logged separately.
MAX_SELECTED = 1_000
# How many characters of a URL a list of choices shows.
MAX_URL_SHOWN = 40


# By the states of endpoints, deliveries and received events.
TONES: dict[str, Tone] = {
    "active": "good",
    "dead": "bad",
    "delivered": "good",
    "disabled": "warning",
    "done": "good",
    "pending": "warning",
    "waiting": "warning",
}


class SelectionRefused(Exception):
    """The action does not support this number of rows."""


class SelectionAdmin(BaseAdmin):
    """Explains why an action refuses a selection, and shows the row that it changed."""

    sortable_by = ()

    @admin.display(description=gettext_lazy("state"))
    def state_badge(self, row: Any) -> str:
        return format_badge(row.get_state_display(), TONES[row.state])

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any], *others: Any) -> HttpResponse | None:
        try:
            return super().response_action(request, queryset)
        except SelectionRefused as error:
            self.message_user(request, _("Nothing was changed: %(reason)s.") % {"reason": error}, messages.ERROR)
        except APIError as error:
            self.message_user(
                request, _("Nothing was changed. %(reason)s.") % {"reason": _(error.default_detail)}, messages.ERROR
            )
        return HttpResponseRedirect(request.get_full_path())

    def redirect_with_message(self, request: HttpRequest, message: str, rows: Sequence[Any]) -> HttpResponse | None:
        """Redirects to the page of the row if there is only one, else to the list. The message may have a count."""
        self.report(request, message, len(rows))
        return HttpResponseRedirect(get_change_url(rows[0])) if len(rows) == 1 else None


def require_selection(queryset: QuerySet[Any]) -> list[Any]:
    """Raises SelectionRefused."""
    rows = list(queryset[: MAX_SELECTED + 1])
    if len(rows) > MAX_SELECTED:
        raise SelectionRefused(
            _("select %(count)s at most") % {"count": number_format(MAX_SELECTED, force_grouping=True)}
        )
    return rows


def require_one(queryset: QuerySet[Any]) -> Any:
    """Raises SelectionRefused."""
    rows = list(queryset[:2])
    if len(rows) != 1:
        raise SelectionRefused(_("select one"))
    return rows[0]


def describe_waiting(attempted: int, next_at: datetime | None) -> str:
    if not attempted or not next_at:
        return _("Nothing yet: it waits for its turn.")
    failed = ngettext("%(count)d attempt failed.", "%(count)d attempts failed.", attempted) % {"count": attempted}
    now = timezone.now()
    if next_at <= now:
        return format_html(_("{} The next one waits for its turn."), failed)
    return format_html(_("{} The next one is due {}."), failed, format_age(next_at, now))


def get_change_url(row: Any) -> str:
    return reverse(f"admin:webhooks_{row._meta.model_name}_change", args=[row.pk])


def shorten_url(url: str) -> str:
    """Returns one line, as long as there is room, as HTML."""
    return format_html('<span class="url">{}</span>', url.removeprefix("https://"))


def decode_text(body: Any) -> str:
    """Decodes bytes for a page. Replaces invalid UTF-8 and NUL."""
    return bytes(body).decode(errors="replace").replace("\0", "\ufffd")


def format_json(body: Any) -> str:
    """Returns indented JSON, or the unchanged text if it is not valid JSON or is nested too deep."""
    try:
        text = decode_text(msgspec.json.format(bytes(body), indent=2))
    except (msgspec.DecodeError, RecursionError):
        text = decode_text(body)
    return format_html("<pre>{}</pre>", text)

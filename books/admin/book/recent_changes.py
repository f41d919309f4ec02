"""The recent changes of all books, newest first."""

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from books.admin.descriptions import Description, Link, describe_entries
from books.admin.pager import PAGE_SIZE, Pager
from books.admin.views import render_page
from books.history.change_pages import CHANGE_KINDS, Filters, read_recent_page
from books.history.cursors import TimeCursor
from books.models import Actor
from library_site.admin.moments import require_utc
from library_site.db.integers import BIGINT_MAX

# The filters, by their parameter names.
# The format of the value of a `datetime-local` input.
DATE_TIME_INPUT = forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


def list_channels() -> list[tuple[str, str]]:
    return [("", gettext("any")), *((name, gettext(label)) for name, label in Actor.Channel.choices)]


def list_kinds() -> list[tuple[str, str]]:
    return [("", gettext("any")), *((label, gettext(label)) for label in CHANGE_KINDS)]


class ChangeFilterForm(forms.Form):
    user = forms.CharField(label=_("User"), required=False, strip=False)
    app = forms.CharField(label=_("App"), required=False, strip=False)
    api_key = forms.CharField(label=_("API key"), required=False, strip=False)
    source = forms.CharField(label=_("Source"), required=False, strip=False)
    channel = forms.ChoiceField(label=_("Channel"), choices=list_channels, required=False)
    kind = forms.ChoiceField(label=_("Kind"), choices=list_kinds, required=False)
    operation = forms.IntegerField(label=_("Operation"), min_value=1, max_value=BIGINT_MAX, required=False)
    since = forms.DateTimeField(label=_("Since"), required=False, widget=DATE_TIME_INPUT, validators=[require_utc])
    until = forms.DateTimeField(label=_("Until"), required=False, widget=DATE_TIME_INPUT, validators=[require_utc])

    def build_filters(self) -> Filters:
        return Filters(**{**self.cleaned_data, "kind": CHANGE_KINDS.get(self.cleaned_data["kind"])})


class ChangeGroup(NamedTuple):
    """Consecutive changes of one operation, or a single change."""

    operation: Link | None
    changes: Sequence[Description]


def group_changes(changes: Sequence[Description]) -> list[ChangeGroup]:
    """Groups the changes of an operation. Otherwise a large one would fill the page and hide other changes."""
    groups = groupby(changes, key=lambda change: change.operation or change.entry.id)
    return [ChangeGroup(key if isinstance(key, Link) else None, list(fields)) for key, fields in groups]


def show_recent_changes(request: HttpRequest) -> HttpResponse:
    form = ChangeFilterForm(request.GET)
    pager = Pager(request.GET, TimeCursor, is_newest_first=True)
    is_valid = form.is_valid()
    entries = pager.read(partial(read_recent_page, form.build_filters()), PAGE_SIZE) if is_valid else []
    changes = describe_entries(entries)
    return render_page(
        request,
        "recent_changes",
        gettext("Recent changes"),
        page_help=gettext(
            "The channel says through what a book was changed: these pages, the interface for programs, an import, and"
            " so on. An operation changed many books together. Each change of a book makes a new version of it, with a"
            " number."
        ),
        form=form,
        changes=changes,
        groups=group_changes(changes),
        pager=pager,
    )

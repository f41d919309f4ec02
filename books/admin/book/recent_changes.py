"""The recent changes of all books, newest first."""

from collections.abc import Mapping, Sequence
from functools import partial

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from books.admin.descriptions import (
    Link,
    changes_address,
    describe_entries,
    describe_operation,
    list_operations,
    name_kind,
)
from books.admin.operations.descriptions import list_first_titles
from books.admin.pager import PAGE_SIZE, Pager
from books.admin.views import render_page
from books.history.change_pages import CHANGE_KINDS, TIME_CURSOR, Entry, Filters, read_recent_page
from books.history.feed import read_feed
from books.history.loans import LENT, NO_LOAN, TAKEN_BACK
from books.models import Actor, Change
from library_site.admin.moments import require_utc
from library_site.db.integers import BIGINT_MAX

# The format of the value of a `datetime-local` input.
DATE_TIME_INPUT = forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


def list_channels() -> list[tuple[str, str]]:
    return [("", gettext("any")), *((name, gettext(label)) for name, label in Actor.Channel.choices)]


def list_kinds() -> list[tuple[str, str]]:
    return [("", gettext("any")), *((label, name_kind(label)) for label in KINDS)]


# The kinds of changes by their labels. To lend a book and to take it back are kinds of their own here.
KINDS: Mapping[str, tuple[Change.Kind, str]] = {
    **{label: (kind, NO_LOAN if kind == Change.Kind.CHANGED else "") for label, kind in CHANGE_KINDS.items()},
    LENT: (Change.Kind.CHANGED, LENT),
    TAKEN_BACK: (Change.Kind.CHANGED, TAKEN_BACK),
}


class ChangeFilterForm(forms.Form):
    user = forms.CharField(label=_("User"), required=False, strip=False)
    kind = forms.ChoiceField(label=_("Kind"), choices=list_kinds, required=False)
    since = forms.DateTimeField(label=_("Since"), required=False, widget=DATE_TIME_INPUT, validators=[require_utc])
    until = forms.DateTimeField(label=_("Until"), required=False, widget=DATE_TIME_INPUT, validators=[require_utc])
    app = forms.CharField(label=_("App"), required=False, strip=False)
    api_key = forms.CharField(label=_("API key"), required=False, strip=False)
    source = forms.CharField(label=_("Source"), required=False, strip=False)
    channel = forms.ChoiceField(label=_("Through"), choices=list_channels, required=False)
    # Links choose it.
    operation = forms.IntegerField(
        label=_("Change of many books"),
        min_value=1,
        max_value=BIGINT_MAX,
        required=False,
        widget=forms.HiddenInput,
    )

    def list_chips(self) -> list[Link]:
        """Returns the filters of a valid form, with links to the page without them."""
        chosen = {name: self.data[name] for name, value in self.cleaned_data.items() if value not in (None, "")}
        return [
            Link(
                self.describe_value(name),
                changes_address(**{other: chosen[other] for other in chosen if other != name}),
            )
            for name in chosen
        ]

    def describe_value(self, name: str) -> str:
        value, field = self.cleaned_data[name], self.fields[name]
        if name == "operation":
            operation = list_operations().filter(pk=value).first()
            return capfirst(describe_operation(operation)) if operation else f"{field.label} {value}"
        if isinstance(field, forms.ChoiceField):
            value = dict(list_kinds() if name == "kind" else list_channels())[value]
        elif name in ("since", "until"):
            value = date_format(timezone.localtime(value), "SHORT_DATETIME_FORMAT")
        return f"{field.label}: {value}"

    def build_filters(self) -> Filters:
        kind, loan = KINDS.get(self.cleaned_data["kind"], (None, ""))
        return Filters(**{**self.cleaned_data, "kind": kind, "loan": loan})


def show_recent_changes(request: HttpRequest) -> HttpResponse:
    """Shows an operation as one line, which leads to its page; the changes of one operation one by one."""
    form = ChangeFilterForm(request.GET, label_suffix="")
    pager = Pager(request.GET, TIME_CURSOR, is_newest_first=True)
    entries: Sequence[Entry] = []
    joins_operations = False
    if form.is_valid():
        filters = form.build_filters()
        joins_operations = filters.operation is None
        entries = pager.read(partial(read_feed if joins_operations else read_recent_page, filters), PAGE_SIZE)
    changes = describe_entries(entries)
    if not joins_operations:
        # The chip above the list names it.
        changes = [change._replace(operation=None) for change in changes]
    titles = (
        list_first_titles({entry.operation_id for entry in entries if entry.operation_id}) if joins_operations else {}
    )
    return render_page(
        request,
        "recent_changes",
        gettext("Recent changes"),
        page_help=gettext(
            "What was done with many books at once is one line, which leads to all of them. “Through” says where a book"
            " was changed: on these pages, by a program, by an import, and so on. Each change of a book makes a new"
            " version of it."
        ),
        form=form,
        chips=form.list_chips() if form.is_valid() else [],
        changes=changes,
        lines=[(change, titles.get(change.entry.operation_id or 0, "")) for change in changes],
        pager=pager,
    )

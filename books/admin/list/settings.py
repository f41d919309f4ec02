"""The settings of a user for the list of books: columns, rows and saved views."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django import forms
from django.contrib import messages
from django.db import transaction
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, When
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from books.admin.descriptions import LABELS
from books.admin.list.filters import change_query
from books.book.fields import FIELDS
from books.models import ListSettings, SavedView
from library_site.db.integers import parse_integer

TEXT_COLUMNS = [name for name in FIELDS if name not in ("isbn", "available")]
# The headings of the list's columns by their parameter names. The title is always visible.
LIST_COLUMNS = {
    **{name: LABELS[name] for name in (*TEXT_COLUMNS, "isbn")},
    "availability": LABELS["available"],
    "created_at": gettext_lazy("Added"),
    "id": gettext_lazy("ID"),
}
DEFAULT_COLUMNS = tuple(name for name in LIST_COLUMNS if name != "id")
ROWS_OF_A_PAGE = (25, 50, 100, 200)
DEFAULT_ROWS = 50
MAX_VIEWS = 50
# So many views are shown, the user's own ones first.
MAX_SHOWN_VIEWS = 250
MAX_QUERY_LENGTH = 4_000


class SettingsForm(forms.Form):
    columns = forms.MultipleChoiceField(choices=[(name, name) for name in LIST_COLUMNS], required=False)
    rows = forms.TypedChoiceField(choices=[(rows, rows) for rows in ROWS_OF_A_PAGE], coerce=int)


class ViewForm(forms.Form):
    name = forms.CharField(max_length=100)
    query = forms.CharField(max_length=MAX_QUERY_LENGTH, required=False)
    is_shared = forms.BooleanField(required=False)


class ViewLink(NamedTuple):
    """A view that the user can open. `owner` is empty for the user's own views."""

    view: SavedView
    query: str
    owner: str
    is_default: bool


def read_settings(request: HttpRequest) -> tuple[Sequence[str], int]:
    """Returns the columns and the rows of a page. A saved view in the address has its own columns."""
    settings = own_settings(request).first()
    view = find_view(request, request.GET.get("view", ""))
    columns = view.columns if view else settings.columns if settings else DEFAULT_COLUMNS
    return ("title", *columns), settings.rows if settings else DEFAULT_ROWS


def find_view(request: HttpRequest, text: str) -> SavedView | None:
    return list_visible(request).filter(pk=parse_integer(text) or 0).first() if text else None


def list_visible(request: HttpRequest) -> QuerySet[SavedView]:
    """The user's own views, and the views that others share."""
    return SavedView.objects.filter(Q(user=request.user.pk) | Q(is_shared=True))


def own_settings(request: HttpRequest) -> QuerySet[ListSettings]:
    return ListSettings.objects.filter(user=request.user.pk)


def list_views(request: HttpRequest) -> list[ViewLink]:
    """Returns the views that the user can open, own views first. The list opens with the default one."""
    is_own = Case(When(user=request.user.pk, then=True), default=False)
    is_default = Exists(own_settings(request).filter(default_view=OuterRef("pk")))
    views = list_visible(request).select_related("user").annotate(is_own=is_own, is_default=is_default)
    links = [
        ViewLink(
            view,
            change_query(QueryDict(view.query), view=view.pk),
            "" if view.is_own else view.user.get_username(),
            view.is_default,
        )
        for view in views.order_by("-is_own", "-is_default", "name", "pk")[:MAX_SHOWN_VIEWS]
    ]
    # The default view stands before others above only to be among those that are shown.
    return sorted(links, key=lambda link: (link.owner != "", link.view.name, link.view.pk))


@require_POST
def save_settings(request: HttpRequest) -> HttpResponse:
    form = SettingsForm(request.POST)
    if form.is_valid():
        columns = [name for name in LIST_COLUMNS if name in form.cleaned_data["columns"]]
        ListSettings.objects.update_or_create(
            user=find_person(request), defaults={"columns": columns, "rows": form.cleaned_data["rows"]}
        )
    else:
        messages.error(request, _("Nothing was changed: choose columns and rows from those that are offered."))
    return redirect_to_list(request.POST.get("query", ""), view="")


@require_POST
def save_view(request: HttpRequest) -> HttpResponse:
    """Saves the query and the columns of the list under a name. Replaces the user's view with the same name."""
    form = ViewForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Nothing was saved: give the view a name of 100 characters at most."))
        return redirect_to_list(request.POST.get("query", ""))
    name, query = form.cleaned_data["name"], change_query(QueryDict(form.cleaned_data["query"]), view="")
    with transaction.atomic():
        views = SavedView.objects.filter(user=request.user.pk)
        if views.count() >= MAX_VIEWS and not views.filter(name=name).exists():
            messages.error(
                request, _("Nothing was saved: delete a view first, %(count)d are the most.") % {"count": MAX_VIEWS}
            )
            return redirect_to_list(query)
        columns, _rows = read_settings(request)
        values = {"query": query, "columns": list(columns), "is_shared": form.cleaned_data["is_shared"]}
        view, _created = SavedView.objects.update_or_create(user=find_person(request), name=name, defaults=values)
    messages.success(request, _("The view “%(name)s” is saved.") % {"name": name})
    return redirect_to_list(query, view=view.pk)


@require_POST
def delete_view(request: HttpRequest) -> HttpResponse:
    view = find_view(request, request.POST.get("view", ""))
    if view and view.user_id == request.user.pk:
        view.delete()
        messages.success(request, _("The view “%(name)s” is deleted.") % {"name": view.name})
    return redirect_to_list("")


@require_POST
def choose_default_view(request: HttpRequest) -> HttpResponse:
    view = find_view(request, request.POST.get("view", ""))
    settings = {"columns": list(DEFAULT_COLUMNS), "rows": DEFAULT_ROWS, "default_view": view}
    ListSettings.objects.update_or_create(
        user=find_person(request), defaults={"default_view": view}, create_defaults=settings
    )
    if not view:
        messages.success(request, _("The list opens with all books."))
        return redirect_to_list("", all=1)
    messages.success(request, _("The list opens with the view “%(name)s”.") % {"name": view.name})
    return redirect_to_list(view.query, view=view.pk)


def find_person(request: HttpRequest) -> Any:
    """Returns the user that Django's lazy object wraps."""
    return request.user


def redirect_to_list(query: str | QueryDict, **changes: Any) -> HttpResponseRedirect:
    parameters = QueryDict(query[:MAX_QUERY_LENGTH]) if isinstance(query, str) else query
    return HttpResponseRedirect(f"{reverse('admin:books_book_changelist')}?{change_query(parameters, **changes)}")

"""The navigation bar of all pages: the user's pages, administration, and the account; and its links as a list."""

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from django import template
from django.contrib import admin
from django.http import HttpRequest
from django.template import Context
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from books.admin.views import SEE_BOOKS, has_any_permission
from books.permissions import ADD_BOOK, BULK_EDIT, CHANGE_BOOK, IMPORT_BOOKS, MERGE_BOOKS, VIEW_HISTORY

register = template.Library()


class Place(NamedTuple):
    """A page in the bar: the name of its URL pattern, and the permissions, any of which is enough."""

    label: str | Promise
    name: str
    permissions: Iterable[str]


class BarLink(NamedTuple):
    label: str
    address: str
    is_current: bool


# Apps beside this one append theirs while they get ready.
PLACES = [
    Place(_("Books"), "books_book_changelist", SEE_BOOKS),
    Place(_("Lend"), "lend", (CHANGE_BOOK,)),
    Place(_("Import"), "import_books", (IMPORT_BOOKS,)),
    Place(_("Changes"), "recent_changes", (VIEW_HISTORY,)),
]
MORE_PLACES = [
    Place(_("Possible duplicates"), "duplicates", (MERGE_BOOKS,)),
    Place(_("Genres"), "genres", SEE_BOOKS),
    Place(_("Deleted books"), "deleted_books", (VIEW_HISTORY,)),
    Place(_("Changes of many books"), "operations", (VIEW_HISTORY, BULK_EDIT)),
]
# What one administers, in this order in every language; models of others follow.
ADMINISTERED = "User Group Application APIKey Authorization Endpoint Delivery Source Received".split()
# The first places, for which a phone has room. A menu contains the others.
PHONE_PLACES = 2


@register.inclusion_tag("bar.html", takes_context=True)
def show_bar(context: Context) -> dict[str, Any]:
    """Shows each link to users who may follow it. Users without access to the admin see only their account."""
    request: HttpRequest = context["request"]
    is_member = admin.site.has_permission(request)
    current = find_current(request.path)
    places, more = (list_links(request, places, current) if is_member else [] for places in (PLACES, MORE_PLACES))
    # The pages of the admin have already read them.
    apps = context.get("available_apps")
    return {
        "request": request,
        "user": request.user,
        "csrf_token": context.get("csrf_token"),
        "is_member": is_member,
        "places": [(link, number < PHONE_PLACES) for number, link in enumerate(places)],
        "more": more,
        "apps": group_administered(request, apps or admin.site.get_app_list(request)).items() if is_member else (),
        # Only the pages of the admin include Django's script for it.
        "has_scheme_choice": apps is not None,
    }


def list_links(request: HttpRequest, places: Iterable[Place], current: str) -> list[BarLink]:
    """Marks the list as current on pages of single books, too, because they have no link of their own."""
    shown = [place for place in places if has_any_permission(request, place.permissions)]
    return [
        BarLink(str(place.label), reverse(f"admin:{place.name}"), is_current=place.name == current) for place in shown
    ]


def find_current(path: str) -> str:
    """Returns the name of the place with the longest address that is a prefix of the path; empty if there is none."""
    addresses = {reverse(f"admin:{place.name}"): place.name for place in (*PLACES, *MORE_PLACES)}
    longest = max(filter(path.startswith, addresses), key=len, default="")
    return addresses.get(longest, "")


def group_administered(request: HttpRequest, apps: Iterable[dict[str, Any]]) -> dict[str, list[BarLink]]:
    """Returns the other models that a user may see, by the name of their apps, which two may share."""
    models = [(app, model) for app in apps for model in app["models"] if app["app_label"] != "books"]
    groups: dict[str, list[BarLink]] = {}
    for app, model in sorted(models, key=lambda pair: get_rank(pair[1]["object_name"])):
        address = model["admin_url"]
        if address:
            link = BarLink(str(model["name"]), address, request.path.startswith(address))
            groups.setdefault(str(app["name"]), []).append(link)
    return groups


def get_rank(model: str) -> int:
    return ADMINISTERED.index(model) if model in ADMINISTERED else len(ADMINISTERED)


@register.simple_tag(takes_context=True)
def list_open_pages(context: Context) -> list[BarLink]:
    """Returns what a person may open who sees no books: the links of the bar, and the empty form."""
    bar, address = show_bar(context), reverse("admin:books_book_add")
    form = (
        [BarLink(gettext("Add book"), address, is_current=False)]
        if has_any_permission(bar["request"], (ADD_BOOK,))
        else []
    )
    links = chain.from_iterable(links for _name, links in bar["apps"])
    return [*form, *(link for link, _is_on_phone in bar["places"]), *bar["more"], *links]

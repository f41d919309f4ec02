"""The navigation bar of all pages: the user's pages, administration, and the account; and its links as a list."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from django import template
from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest
from django.template import Context
from django.urls import reverse
from django.utils.functional import Promise

from library_site.admin.site import has_any_permission

register = template.Library()


class BarPage(NamedTuple):
    """A page in the bar: the name of its URL pattern, and the permissions, any of which is enough."""

    label: str | Promise
    name: str
    permissions: Iterable[str]


class BarLink(NamedTuple):
    label: str
    address: str
    is_current: bool


# Apps append theirs while they get ready. A menu has the second ones.
BAR_PAGES: list[BarPage] = []
MORE_PAGES: list[BarPage] = []
# The first pages, for which a phone has room. A menu contains the others.
PHONE_PAGES = 2


@register.inclusion_tag("bar.html", takes_context=True)
def show_bar(context: Context) -> dict[str, Any]:
    """Shows each link to users who may follow it. Users without access to the admin see only their account."""
    request: HttpRequest = context["request"]
    is_member = admin.site.has_permission(request)
    current = find_current(request.path)
    pages, more = (list_links(request, pages, current) if is_member else [] for pages in (BAR_PAGES, MORE_PAGES))
    # The pages of the admin have already read them.
    apps = context.get("available_apps")
    return {
        "request": request,
        "user": request.user,
        "csrf_token": context.get("csrf_token"),
        "is_member": is_member,
        "pages": [(link, number < PHONE_PAGES) for number, link in enumerate(pages)],
        "more": more,
        "apps": group_administered(request, apps or admin.site.get_app_list(request)).items() if is_member else (),
        # Only the pages of the admin include Django's script for it.
        "has_scheme_choice": apps is not None,
    }


def list_links(request: HttpRequest, pages: Iterable[BarPage], current: str) -> list[BarLink]:
    """Marks the list as current on pages of single books, too, because they have no link of their own."""
    shown = [page for page in pages if has_any_permission(request, page.permissions)]
    return [BarLink(str(page.label), reverse(f"admin:{page.name}"), is_current=page.name == current) for page in shown]


def find_current(path: str) -> str:
    """Returns the name of the page with the longest address that is a prefix of the path; empty if there is none."""
    addresses = {reverse(f"admin:{page.name}"): page.name for page in (*BAR_PAGES, *MORE_PAGES)}
    longest = max(filter(path.startswith, addresses), key=len, default="")
    return addresses.get(longest, "")


def group_administered(request: HttpRequest, apps: Iterable[dict[str, Any]]) -> dict[str, list[BarLink]]:
    """Returns the other models that a user may see, by the name of their app. Two apps may have the same."""
    models = [(app, model) for app in apps for model in app["models"] if app["app_label"] != "books"]
    groups: dict[str, list[BarLink]] = {}
    for app, model in sorted(models, key=lambda pair: get_rank(f"{pair[0]['app_label']}.{pair[1]['object_name']}")):
        address = model["admin_url"]
        if address:
            link = BarLink(str(model["name"]), address, request.path.startswith(address))
            groups.setdefault(str(app["name"]), []).append(link)
    return groups


def get_rank(label: str) -> int:
    menu: list[str] = settings.ADMIN_MENU
    return menu.index(label) if label in menu else len(menu)

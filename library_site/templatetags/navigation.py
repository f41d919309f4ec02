"""The navigation bar of all pages: the user's pages, administration, and the account; and its links as a list."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from django import template
from django.apps import apps
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
    app_list = context.get("available_apps")
    return {
        "request": request,
        "site_header": context.get("site_header") or admin.site.site_header,
        "user": request.user,
        "csrf_token": context.get("csrf_token"),
        "is_member": is_member,
        "pages": [(link, number < PHONE_PAGES) for number, link in enumerate(pages)],
        "more": more,
        "apps": group_administered(request, app_list or admin.site.get_app_list(request)).items() if is_member else (),
        # Only the pages of the admin include Django's script for it.
        "has_scheme_choice": app_list is not None,
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


def group_administered(request: HttpRequest, app_list: Iterable[dict[str, Any]]) -> dict[str, list[BarLink]]:
    """Returns the other models that a user may see, by the name of their app. Two apps may have the same. They have
    the order of INSTALLED_APPS, which is the same in all languages.
    """
    shown = {model["model"]: (str(app["name"]), model) for app in app_list for model in app["models"]}
    groups: dict[str, list[BarLink]] = {}
    for name, model in (shown[one] for one in apps.get_models() if one in shown and one._meta.app_label != "books"):
        if address := model["admin_url"]:
            link = BarLink(str(model["name"]), address, request.path.startswith(address))
            groups.setdefault(name, []).append(link)
    return groups

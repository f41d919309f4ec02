"""What the first page of the admin shows of the books."""

from itertools import chain
from typing import Any

from django import template
from django.template import Context
from django.urls import reverse
from django.utils.translation import gettext

from books.admin.first_page import describe_first_page
from books.permissions import ADD_BOOK
from library_site.templatetags.navigation import BarLink, show_bar

register = template.Library()


@register.inclusion_tag("admin/books/first_page.html", takes_context=True)
def show_first_page(context: Context) -> dict[str, Any]:
    shared = {name: context.get(name) for name in ("perms", "csrf_token", "request")}
    return {**shared, **describe_first_page(context["request"])}


@register.simple_tag(takes_context=True)
def list_open_pages(context: Context) -> list[BarLink]:
    """Returns what a person may open who sees no books: the links of the bar, and the empty form."""
    bar, form = show_bar(context), BarLink(gettext("Add book"), reverse("admin:books_book_add"), is_current=False)
    links = chain.from_iterable(links for _name, links in bar["apps"])
    may_add = bar["user"].has_perm(ADD_BOOK)
    return [*([form] if may_add else []), *(link for link, _is_on_phone in bar["pages"]), *bar["more"], *links]

"""What the first page of the admin shows of the books."""

from typing import Any

from django import template
from django.template import Context

from books.admin.first_page import describe_first_page

register = template.Library()


@register.inclusion_tag("admin/books/first_page.html", takes_context=True)
def show_first_page(context: Context) -> dict[str, Any]:
    shared = {name: context.get(name) for name in ("perms", "csrf_token", "request")}
    return {**shared, **describe_first_page(context["request"])}

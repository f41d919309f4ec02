"""Numbers of books in templates."""

from django import template

from library_site.admin.paginator import format_count

register = template.Library()
register.filter("count", format_count)

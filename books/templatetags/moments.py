"""Times in templates."""

from django import template

from library_site.admin.moments import format_moment

register = template.Library()
register.filter("moment", format_moment)

"""Numbers and times in templates."""

from datetime import datetime

from django import template
from django.utils import timezone

from library_site.admin.moments import format_age, format_moment
from library_site.admin.paginator import format_total

register = template.Library()
register.filter("count", format_total)
register.filter("moment", format_moment)


@register.filter
def age(moment: datetime) -> str:
    return format_age(moment, timezone.now())

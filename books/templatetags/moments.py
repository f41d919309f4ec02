"""Times in templates."""

from datetime import datetime

from django import template
from django.utils import timezone

from library_site.admin.moments import format_age, format_moment

register = template.Library()
register.filter("moment", format_moment)


@register.filter
def age(moment: datetime) -> str:
    return format_age(moment, timezone.now())

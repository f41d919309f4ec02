"""Times for people: in the reader's zone and language."""

from datetime import UTC, datetime

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html


def format_moment(moment: datetime) -> str:
    """Returns HTML: a `time` element with the zone. A moment without a zone is in UTC."""
    local = localize_moment(moment)
    text = f"{date_format(local, 'DATE_FORMAT')}, {date_format(local, 'H:i:s T')}"
    return format_html('<time datetime="{}">{}</time>', local.isoformat(), text)


def localize_moment(moment: datetime) -> datetime:
    """Returns the moment in the reader's zone. At the ends of the calendar, where that has no name, it stays in UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return timezone.localtime(aware)
    except OverflowError:
        return aware

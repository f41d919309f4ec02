"""Times for people: in the reader's zone and language."""

from datetime import UTC, datetime

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html


def format_moment(moment: datetime) -> str:
    """Returns HTML: a `time` element with the zone. A moment without a zone is in UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    local = convert_to_local(aware)
    text = f"{date_format(local, 'DATE_FORMAT')}, {date_format(local, 'H:i:s T')}"
    return format_html('<time datetime="{}">{}</time>', aware.astimezone(UTC).isoformat(), text)


def convert_to_local(moment: datetime) -> datetime:
    """Returns the moment in the reader's zone; in its own, if it is at an end of the calendar."""
    try:
        return timezone.localtime(moment)
    except OverflowError:
        return moment

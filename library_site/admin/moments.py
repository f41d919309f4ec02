"""Times for people: in the reader's zone and language."""

from datetime import UTC, datetime, timedelta

from django.contrib.humanize.templatetags.humanize import naturaltime
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.translation import gettext as _


def format_moment(moment: datetime) -> str:
    """Returns HTML: a `time` element with the zone. A moment without a zone is in UTC."""
    local = localize_moment(moment)
    return format_html('<time datetime="{}">{}</time>', local.isoformat(), write_moment(local))


def format_age(moment: datetime, now: datetime) -> str:
    """Returns HTML: a `time` element that says how long ago it was; of what is older than a day, the date."""
    local = localize_moment(moment)
    text = naturaltime(local) if now - local < timedelta(days=1) else format_date(local)
    return format_html('<time datetime="{}" title="{}">{}</time>', local.isoformat(), write_moment(local), text)


def write_moment(local: datetime) -> str:
    return f"{date_format(local, 'DATE_FORMAT')}, {date_format(local, 'H:i:s T')}"


def format_date(moment: datetime) -> str:
    """Returns the day in the reader's zone, with the month as a word: no order of numbers is everybody's."""
    # Translators: a short date, in the letters of Django's date filter.
    return date_format(localize_moment(moment), _("j M Y"))


def localize_moment(moment: datetime) -> datetime:
    """Returns the moment in the reader's zone."""
    return timezone.localtime(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def require_utc(moment: datetime) -> None:
    """A validator of form fields. Raises ValidationError for a time that the calendar does not have in UTC."""
    try:
        moment.astimezone(UTC)
    except OverflowError as error:
        raise ValidationError(_("It is no time in UTC.")) from error

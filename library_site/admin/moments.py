"""Formats times for people, in their time zone and language."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib import admin
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.translation import gettext as _


def format_moment(moment: datetime) -> str:
    """Returns a `time` element with date and time. A naive datetime is in UTC."""
    return build_time(moment, format_short_moment(moment))


def format_age(moment: datetime, now: datetime) -> str:
    """Returns a `time` element with the age, or with the date if it is older than a day."""
    local = localize_moment(moment)
    return build_time(moment, naturaltime(local) if now - local < timedelta(days=1) else format_date(local))


def build_time(moment: datetime, text: str) -> str:
    """The tooltip has the seconds and the zone."""
    local = localize_moment(moment)
    return format_html('<time datetime="{}" title="{}">{}</time>', local.isoformat(), write_moment(local), text)


def write_moment(local: datetime) -> str:
    return f"{format_date(local)}, {date_format(local, 'H:i:s T')}"


def format_short_moment(moment: datetime) -> str:
    """Returns date and time as text."""
    return f"{format_date(moment)}, {date_format(localize_moment(moment), 'H:i')}"


def format_date(moment: datetime) -> str:
    """Returns the date in the user's zone, with the month's name: the order of numbers differs between countries."""
    # Translators: a short date, in the letters of Django's date filter.
    return date_format(localize_moment(moment), _("j M Y"))


def localize_moment(moment: datetime) -> datetime:
    """Converts a time to the user's zone."""
    return timezone.localtime(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def moment_column(
    field: str, title: Any, write: Callable[[datetime], str] = format_moment, otherwise: Any = ""
) -> Callable[[Any, Any], str]:
    """Returns a column of a ModelAdmin that shows a time of the row, or other words if there is none."""

    @admin.display(description=title)
    def column(model_admin: Any, row: Any) -> str:
        moment = getattr(row, field)
        return write(moment) if moment else str(otherwise)

    return column


def age_column(field: str, title: Any, otherwise: Any = "") -> Callable[[Any, Any], str]:
    return moment_column(field, title, lambda moment: format_age(moment, timezone.now()), otherwise)


def require_utc(moment: datetime) -> None:
    """A validator of form fields. Raises ValidationError for a time that is out of range in UTC."""
    try:
        moment.astimezone(UTC)
    except OverflowError as error:
        raise ValidationError(_("It is no time in UTC.")) from error

"""Entries of Django's admin log. An entry keeps the title of its object, even if the object is deleted."""

from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import QuerySet

ANONYMOUS_TITLE = "forgotten"


def list_entries(rows: QuerySet[Any]) -> QuerySet[LogEntry]:
    """Returns the entries about these objects. The log stores ids as strings, and has entries of few objects."""
    entries = LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(rows.model))
    logged_pks = rows.filter(pk__in=set(entries.values_list("object_id", flat=True))).values_list("pk", flat=True)
    return entries.filter(object_id__in=[str(pk) for pk in logged_pks])


def remove_titles(entries: QuerySet[LogEntry]) -> int:
    """Removes the titles. Returns the number of entries."""
    return entries.update(object_repr=ANONYMOUS_TITLE)

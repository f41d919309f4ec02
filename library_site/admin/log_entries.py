"""The entries of Django's admin log about objects. An entry holds the title of its object, also when that is gone."""

from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import QuerySet

ANONYMOUS_TITLE = "forgotten"


def list_entries(rows: QuerySet[Any]) -> QuerySet[LogEntry]:
    """Returns the entries about these objects. The log has their ids as texts, and few of many objects are in it."""
    entries = LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(rows.model))
    logged_pks = rows.filter(pk__in=set(entries.values_list("object_id", flat=True))).values_list("pk", flat=True)
    return entries.filter(object_id__in=[str(pk) for pk in logged_pks])


def remove_titles(entries: QuerySet[LogEntry]) -> int:
    """Returns the number of entries."""
    return entries.update(object_repr=ANONYMOUS_TITLE)

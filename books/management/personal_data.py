"""The personal data of a user in the history of books, and the user's settings for the list.

One of the modules of PERSONAL_DATA.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

from django.contrib.auth.models import User
from django.db.models import CharField, Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Cast, Concat

from books.fields import FormattedTimestamp
from books.history.change_pages import Entry, iter_actor_entries
from books.models import Actor, ImportFile, ListSettings, SavedView
from books.serializers import BookSerializer
from oauth.management.users import Person

VIEW_FIELDS = ("name", "query", "columns")


def export_data(person: Person) -> Iterator[tuple[str, Any]]:
    """Changes have the format of version 2 of the API."""
    actor_ids = list(list_actors(person).order_by("pk").values_list("pk", flat=True))
    yield "list_settings", ListSettings.objects.filter(user=person.user_id).values("columns", "rows").first()
    yield "saved_views", list(SavedView.objects.filter(user=person.user_id).order_by("pk").values(*VIEW_FIELDS))
    yield "uploaded_files", list_files(person)
    yield "changes", map(export_entry, chain.from_iterable(map(iter_actor_entries, actor_ids)))


def list_files(person: Person) -> list[dict[str, Any]]:
    files = ImportFile.objects.filter(user=person.user_id).order_by("pk")
    uploaded_at = FormattedTimestamp("created_at", "Z")
    return [dict(row) for row in files.annotate(uploaded_at=uploaded_at).values("name", "size", "uploaded_at")]


def list_actors(person: Person) -> QuerySet[Actor]:
    """Returns the actors of the account, and those with the same name whose account is deleted."""
    is_deleted = ~Exists(User.objects.filter(pk=OuterRef("user_id")))
    return Actor.objects.filter(Q(user_id=person.user_id) | Q(is_deleted, user_name=person.name))


def export_entry(entry: Entry) -> dict[str, Any]:
    return {"book": entry.book_id, **entry.to_document(BookSerializer)}


def forget(person: Person) -> Counter[str]:
    """Removes the names of the user's actors, so that they no longer lead to an account. The changes stay."""
    identity = Concat(Value("forgotten "), Cast("pk", CharField()))
    count = list_actors(person).update(user_id=None, user_name="", api_key_name="", identity=identity)
    return Counter({"names in the history of books": count})

"""What the history of books knows of a person; one of the modules of PERSONAL_DATA."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC
from itertools import chain
from typing import Any

from django.contrib.auth.models import User
from django.db.models import CharField, Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Cast, Concat

from books.models import Actor, Change
from oauth.management.users import Person

PAGE_SIZE = 1_000
CHANGE_COLUMNS = ("id", "at", "book_id", "version", "kind", "operation_id", "before", "after")


def export_data(person: Person) -> Iterator[tuple[str, Any]]:
    yield "changes", chain.from_iterable(map(iter_changes, list(find_actors(person).order_by("pk"))))


def find_actors(person: Person) -> QuerySet[Actor]:
    """Returns the actors of the account, and those with its name whose account is deleted."""
    is_deleted = ~Exists(User.objects.filter(pk=OuterRef("user_id")))
    return Actor.objects.filter(Q(user_id=person.user_id) | Q(is_deleted, user_name=person.name))


def iter_changes(actor: Actor) -> Iterator[dict[str, Any]]:
    """Yields the changes of an actor in the order of their time, a page of them in memory."""
    who = {name: getattr(actor, f"{name}_name") or None for name in ("user", "app", "api_key", "source")}
    changes = Change.objects.filter(actor=actor).order_by("at", "pk").values(*CHANGE_COLUMNS)
    page = list(changes[:PAGE_SIZE])
    while page:
        for row in page:
            yield describe_change(row, actor.channel, who)
        last = page[-1]
        # The first condition alone can be looked up in the index.
        is_later = Q(at__gt=last["at"]) | Q(pk__gt=last["id"])
        page = list(changes.filter(is_later, at__gte=last["at"])[:PAGE_SIZE])


def describe_change(row: dict[str, Any], channel: str, who: dict[str, Any]) -> dict[str, Any]:
    return {
        "book": row["book_id"],
        "version": row["version"],
        "kind": Change.Kind(row["kind"]).label,
        "at": row["at"].replace(tzinfo=UTC),
        "channel": channel,
        "actor": who,
        "operation": row["operation_id"],
        "before": row["before"],
        "after": row["after"],
    }


def forget(person: Person) -> Counter[str]:
    """The changes stay. The actors name nobody, and no account is found by them."""
    identity = Concat(Value("forgotten "), Cast("pk", CharField()))
    count = find_actors(person).update(user_id=None, user_name="", api_key_name="", identity=identity)
    return Counter({"names in the history of books": count})

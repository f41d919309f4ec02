"""Actions on many books. They ask first if the books are on more than one page, or if they are deleted."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from books import changes
from books.admin.pages import find_librarian, render_page
from books.history.actors import ActorRef, begin_operation
from books.models import Book

# As many as one transaction changes without keeping other writers waiting.
MAX_BOOKS = 1_000
MAX_SAMPLES = 10


class MassAction(NamedTuple):
    """What is asked, what it cannot take back, and how it is done. `unchanged` are books that it leaves as they are.

    `apply` returns the number of books that it changed.
    """

    name: str
    kind: str
    question: str
    consequence: str
    result: str
    apply: Callable[[QuerySet[Book], ActorRef, datetime], int]
    unchanged: Q | None = None
    always_asks: bool = False


def delete(books: QuerySet[Book], actor: ActorRef, now: datetime) -> int:
    count = books.count()
    changes.delete_books(books, actor, now=now)
    return count


def build_mark(name: str, word: str, available: bool) -> MassAction:
    def mark(books: QuerySet[Book], actor: ActorRef, now: datetime) -> int:
        return changes.set_available(books, available, actor, now=now)

    consequence = "Together they cannot be set back: the history of each book has what it was before."
    return MassAction(
        name, "mark", f"Mark as {word}", consequence, f"Books now {word}", mark, unchanged=Q(available=available)
    )


MARK_AVAILABLE = build_mark("mark_available", "available", available=True)
MARK_LENT = build_mark("mark_lent", "lent", available=False)
DELETE = MassAction(
    "delete_books",
    "delete",
    "Delete",
    "Deleted books can only be restored one by one, from the page “Deleted books”.",
    "Books deleted",
    delete,
    always_asks=True,
)


def run_action(request: HttpRequest, books: QuerySet[Book], action: MassAction) -> HttpResponse | None:
    """Changes the books, or answers the page that asks. The filter of the list is applied again after the answer."""
    pks = list(books.order_by().values_list("pk", flat=True)[: MAX_BOOKS + 1])
    if len(pks) > MAX_BOOKS:
        message = f"Nothing was changed: these are more than {MAX_BOOKS:,} books. Narrow the list by its filters first."
        messages.error(request, message)
        return None
    selected_books = Book.objects.filter(pk__in=pks)
    if must_ask(request, action) and request.POST.get("confirmed") != str(len(pks)):
        return render_question(request, selected_books, action, len(pks))
    now = timezone.now()
    with transaction.atomic():
        actor = begin_operation(action.kind, find_librarian(request), now)
        count = action.apply(selected_books, actor, now)
    messages.success(request, f"{action.result}: {count}.")
    return None


def must_ask(request: HttpRequest, action: MassAction) -> bool:
    return action.always_asks or request.POST.get("select_across", "0") not in ("", "0")


def render_question(request: HttpRequest, books: QuerySet[Book], action: MassAction, count: int) -> HttpResponse:
    context: dict[str, Any] = {
        "action": action,
        "count": count,
        "unchanged_count": books.filter(action.unchanged).count() if action.unchanged else 0,
        "samples": books.order_by("-pk")[:MAX_SAMPLES],
        "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
        "select_across": request.POST.get("select_across", "0"),
        # The answer to the question was about another number of books.
        "has_changed": "confirmed" in request.POST,
        "list_address": request.get_full_path(),
    }
    return render_page(
        request, "mass_action", f"{action.question}: {count} book{'' if count == 1 else 's'}?", **context
    )

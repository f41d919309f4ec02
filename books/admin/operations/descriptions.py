"""Describes an operation as text: what it does, its progress and its result."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, OuterRef, Subquery
from django.utils.formats import number_format
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from books.admin.descriptions import (
    Link,
    find_titles,
    format_sentence,
    format_value,
    history_address,
    isolate,
    label_field,
    link_book,
    link_undo,
)
from books.admin.pager import PAGE_SIZE, Pager
from books.models import Change, Operation, OperationProblem
from books.operations.edits import read_edit
from books.operations.lifecycle import UNDER_WAY
from books.operations.tasks import get_kind
from library_site.admin.badges import Tone, format_badge

# A line about an operation names so many of the books that it changed.
SHOWN_BOOKS = 3
# An operation that waits longer probably has no worker.
LONG_WAIT = timedelta(seconds=10)
TONES: dict[str, Tone] = {"done": "good", "failed": "bad", "cancelled": "warning"}


def format_state(operation: Operation, undo: Operation | None = None) -> str:
    """Returns HTML. `undo` is what undid the operation."""
    if undo:
        return format_badge(mark_safe(str(link_undo(undo))), "warning")  # noqa: S308  # `format_html` made it
    return format_badge(operation.get_state_display(), TONES.get(operation.state, ""))


def is_under_way(operation: Operation) -> bool:
    return operation.state in UNDER_WAY


def count_done(operation: Operation) -> int:
    numbers = (operation.changed, operation.unchanged, operation.refused, operation.missed)
    return sum(number or 0 for number in numbers)


def describe_edit(parameters: Mapping[str, Any]) -> Iterator[str]:
    if "set" not in parameters and "replace" not in parameters:
        return
    edit = read_edit(parameters)
    for name, value in edit.values.items():
        yield _("%(member)s becomes “%(value)s”") % {"member": label_field(name), "value": format_value(value)}
    if edit.field:
        names = {"member": label_field(edit.field), "find": isolate(edit.find), "new": isolate(edit.replacement)}
        yield _("In %(member)s “%(find)s” becomes “%(new)s”") % names


def describe_outcome(operation: Operation) -> list[str]:
    """Describes the result so far, without zero counts; empty if nothing was counted."""
    kind = get_kind(operation.kind)
    if operation.changed is None or not kind.sentences:
        return []
    numbers = kind.read_numbers(operation)
    # An operation that changed nothing says so for its main count.
    names = [name for name in kind.sentences if numbers.get(name)] or [next(iter(kind.sentences))]
    return [format_sentence(kind.sentences[name], numbers.get(name) or 0) for name in names]


def describe_done(operation: Operation) -> list[str]:
    """Describes how far an operation is that is under way."""
    if operation.matched is None or not is_under_way(operation):
        return []
    numbers = {"done": count_done(operation), "matched": operation.matched}
    return [_("%(done)s of %(matched)s") % {name: number_format(n, force_grouping=True) for name, n in numbers.items()}]


def list_first_titles(operation_ids: Collection[int]) -> dict[int, str]:
    """Returns the titles of the first books that each operation changed, as one text."""
    books = find_changed_books(operation_ids, SHOWN_BOOKS + 1) if operation_ids else {}
    return {pk: join_titles([book.text for book in found]) for pk, found in books.items()}


def join_titles(titles: Sequence[str]) -> str:
    return ", ".join(map(isolate, titles[:SHOWN_BOOKS])) + (", …" if len(titles) > SHOWN_BOOKS else "")


def find_changed_books(operation_ids: Collection[int], limit: int) -> dict[int, list[Link]]:
    """Returns the first books that each operation changed, with links to their histories. Takes three queries."""
    changes = Change.objects.filter(operation=OuterRef("pk")).order_by("pk").values("book_id")
    firsts = [Subquery(changes[number : number + 1]) for number in range(limit)]
    rows = Operation.objects.filter(pk__in=operation_ids).values_list("pk", *firsts)
    book_ids = {pk: dict.fromkeys(book_id for book_id in ids if book_id) for pk, *ids in rows}
    titles = find_titles(set().union(*book_ids.values()))
    return {pk: [Link(titles[book_id], history_address(book_id)) for book_id in ids] for pk, ids in book_ids.items()}


def describe_progress(operation: Operation, now: datetime) -> dict[str, Any]:
    return {
        "is_under_way": is_under_way(operation),
        "done": count_done(operation),
        "matched": operation.matched,
        "outcome": describe_done(operation) or describe_outcome(operation),
        "message": describe_wait(operation, now),
    }


def describe_wait(operation: Operation, now: datetime) -> str:
    """Describes the time left, or why the operation has not started."""
    if operation.state == Operation.State.WAITING:
        if now - operation.created_at < LONG_WAIT:
            return _("It begins in a moment.")
        return _(
            "It has not begun: another change is under way, or the library's work in the background has stopped. "
            "If it does not begin, tell the people who run the library."
        )
    seconds = estimate_seconds_left(operation, now)
    if seconds is None:
        return ""
    if seconds < 60:
        return ngettext("About %(count)d second left.", "About %(count)d seconds left.", seconds) % {"count": seconds}
    minutes = round(seconds / 60)
    return ngettext("About %(count)d minute left.", "About %(count)d minutes left.", minutes) % {"count": minutes}


def estimate_seconds_left(operation: Operation, now: datetime) -> int | None:
    """Returns None if the operation is not running, or there is no progress yet."""
    done = count_done(operation)
    if operation.state != Operation.State.RUNNING or not done or not operation.started_at:
        return None
    seconds_each = max(0.0, (now - operation.started_at).total_seconds()) / done
    return max(1, round(seconds_each * max(0, (operation.matched or 0) - done)))


def list_problems(operation: Operation, pager: Pager) -> list[tuple[Link, str]]:
    problems = OperationProblem.objects.filter(operation=operation)
    return [(link_book(problem.subject), describe_problem(problem)) for problem in pager.read_rows(problems, PAGE_SIZE)]


def count_problems(operation: Operation) -> list[tuple[str, int]]:
    """Returns the reasons with their counts, most frequent first."""
    problems = OperationProblem.objects.filter(operation=operation)
    rows = problems.values_list("reason").annotate(count=Count("pk")).order_by("-count", "reason")
    return [(str(OperationProblem.Reason(reason).label), count) for reason, count in rows]


def describe_problem(problem: OperationProblem) -> str:
    detail = ", ".join(label_field(name) for name in problem.detail.split(", ")) if problem.detail else ""
    return f"{problem.get_reason_display()}: {detail}" if detail else str(problem.get_reason_display())

"""Says in words what an operation has done: each kind counts something of its own."""

from collections.abc import Mapping
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext_lazy, ngettext_lazy

from books.models import Operation

# Sentences by the numbers of an operation, the most important first. `number` decides between one and many.
Sentences = Mapping[str, Any]

LEFT: Sentences = {
    "unchanged": ngettext_lazy("%(count)s needed no change", "%(count)s needed no change", "number"),
    "refused": ngettext_lazy("%(count)s left as it was", "%(count)s left as they were", "number"),
    "missed": ngettext_lazy("%(count)s no longer matched", "%(count)s no longer matched", "number"),
}
CHANGED: Sentences = {
    "changed": ngettext_lazy("%(count)s book changed", "%(count)s books changed", "number"),
    **LEFT,
}
OUTCOMES: Mapping[str, Sentences] = {
    "delete": {
        "changed": ngettext_lazy("%(count)s book deleted", "%(count)s books deleted", "number"),
        **LEFT,
    },
    "export": {"unchanged": ngettext_lazy("%(count)s book written", "%(count)s books written", "number")},
    "merge": {"changed": gettext_lazy("two books became one")},
    "undo": {
        "changed": ngettext_lazy("%(count)s put back", "%(count)s put back", "number"),
        "refused": ngettext_lazy(
            "%(count)s left because somebody changed it since",
            "%(count)s left because somebody changed them since",
            "number",
        ),
        "unchanged": ngettext_lazy("%(count)s was as before", "%(count)s were as before", "number"),
    },
    "import": {
        "new": ngettext_lazy("%(count)s book added", "%(count)s books added", "number"),
        "changed": ngettext_lazy("%(count)s book changed", "%(count)s books changed", "number"),
        "unchanged": ngettext_lazy("%(count)s record changed nothing", "%(count)s records changed nothing", "number"),
        "refused": ngettext_lazy("%(count)s record refused", "%(count)s records refused", "number"),
    },
    "import check": {
        "unchanged": ngettext_lazy("%(count)s record can be read", "%(count)s records can be read", "number"),
        "refused": ngettext_lazy("%(count)s record refused", "%(count)s records refused", "number"),
    },
    "import preview": {},
}


def describe_outcome(operation: Operation) -> list[str]:
    """Returns what was done so far, without what was done to none; empty if nobody counted."""
    sentences = OUTCOMES.get(operation.kind, CHANGED)
    if operation.changed is None or not sentences:
        return []
    numbers = read_numbers(operation)
    # An operation that did nothing says that of what it was to do.
    names = [name for name in sentences if numbers.get(name)] or [next(iter(sentences))]
    return [format_sentence(sentences[name], numbers.get(name) or 0) for name in names]


def read_numbers(operation: Operation) -> dict[str, int | None]:
    """Of an import, added and changed books are counted apart."""
    numbers = {name: getattr(operation, name) for name in ("changed", "unchanged", "refused", "missed")}
    counts = (operation.result or {}).get("counts", {}) if operation.kind == "import" else {}
    return {**numbers, "new": counts.get("new"), "changed": counts.get("changed", 0) if counts else numbers["changed"]}


def format_sentence(text: Any, number: int) -> str:
    return str(text % {"number": number, "count": number_format(number, force_grouping=True)})

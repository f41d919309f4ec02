"""Lends and returns: changes of the availability and of nothing else."""

import json
from collections.abc import Mapping
from typing import Any

from django.db.models import F, Q, TextField
from django.db.models.functions import Cast
from django.db.models.lookups import In
from django.utils.translation import gettext_noop

from books.models import Change

LENT, TAKEN_BACK, NO_LOAN = gettext_noop("lent"), gettext_noop("taken back"), "no loan"
STATES = {LENT: {"available": False}, TAKEN_BACK: {"available": True}}
# `after` as PostgreSQL writes it, with a blank, and as SQLite has stored it.
SEPARATORS = [(", ", ": "), (",", ":")]
TEXTS = {
    loan: [json.dumps(values, separators=separators) for separators in SEPARATORS] for loan, values in STATES.items()
}


def find_loan(after: Mapping[str, Any] | None) -> str:
    """Returns LENT or TAKEN_BACK, empty for any other change. `after` are the values after the change."""
    return next((loan for loan, values in STATES.items() if values == after), "")


def build_loan_condition(loan: str) -> Q:
    """Selects lends, returns, or changes of books that are neither."""
    if loan == NO_LOAN:
        return Q(kind=Change.Kind.CHANGED) & ~Q(build_text_condition([*TEXTS[LENT], *TEXTS[TAKEN_BACK]]))
    return Q(build_text_condition(TEXTS[loan]), kind=Change.Kind.CHANGED)


def build_text_condition(texts: list[str]) -> In:
    return In(Cast(F("after"), TextField()), texts)

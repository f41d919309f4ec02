"""Lends and returns: changes of the availability and of nothing else."""

from collections.abc import Mapping
from typing import Any

from django.db.models import F, Q, TextField
from django.db.models.functions import Cast
from django.db.models.lookups import In
from django.utils.translation import gettext_noop

from books.models import LEND_TEXTS, RETURN_TEXTS, Change, IsLoan

LENT, TAKEN_BACK, NO_LOAN = gettext_noop("lent"), gettext_noop("taken back"), "no loan"
STATES = {LENT: {"available": False}, TAKEN_BACK: {"available": True}}
TEXTS = {LENT: LEND_TEXTS, TAKEN_BACK: RETURN_TEXTS}


def find_loan(after: Mapping[str, Any] | None) -> str:
    """Returns LENT or TAKEN_BACK, empty for any other change. `after` are the values after the change."""
    return next((loan for loan, values in STATES.items() if values == after), "")


def build_loan_condition(loan: str) -> Q:
    """Selects lends, returns, or changes of books that are neither."""
    if loan == NO_LOAN:
        return Q(kind=Change.Kind.CHANGED) & ~Q(IsLoan())
    return Q(IsLoan()) & Q(In(Cast(F("after"), TextField()), TEXTS[loan]))

"""A change that its transaction takes back."""

from django.db import transaction
from django.utils import timezone

from books.writing import changes
from tests.support.books import ACTOR, build_book


def roll_back_creation() -> None:
    with transaction.atomic():
        changes.create_in_transaction(build_book(), ACTOR, timezone.now())
        transaction.set_rollback(True)

"""How the serializers of bodies write books, in all versions."""

from collections.abc import Callable, Mapping
from typing import Any

from django.utils import timezone
from rest_framework.serializers import BaseSerializer

from books.book_values import make_book_values
from books.history.actors import get_current_actor
from books.models import Book
from books.writing import changes
from books.writing.signals import build_instance


class BookWriterMixin(BaseSerializer[Book]):
    """Its `save` retries what another request came before, unlike `save` of a book."""

    def create(self, validated_data: Any) -> Book:
        """Raises IsbnInUse, ConcurrentChange."""
        return build_instance(changes.create_book(validated_data, get_current_actor(), timezone.now()))

    def update(self, instance: Book, validated_data: Any) -> Book:
        """Raises BookNotFound, IsbnInUse, ConcurrentChange, and what `require_state` of the context raises."""
        return change_read_book(instance, validated_data, self.context.get("require_state"))


def change_read_book(book: Book, values: Mapping[str, Any], require_state: Callable[[Any], None] | None) -> Book:
    """Raises BookNotFound, IsbnInUse, ConcurrentChange, and what `require_state` raises."""
    actor, now = get_current_actor(), timezone.now()
    return build_instance(
        changes.change_book(book.pk, values, require_state, actor, now, read_book=make_book_values(book))
    )

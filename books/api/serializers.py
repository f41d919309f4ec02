"""How the serializers of bodies write books, in all versions."""

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
        check, read_book = self.context.get("require_state"), make_book_values(instance)
        row = changes.change_book(
            instance.pk, validated_data, check, get_current_actor(), timezone.now(), read_book=read_book
        )
        return build_instance(row)

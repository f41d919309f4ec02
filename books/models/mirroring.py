"""The books of other libraries that have a copy here."""

from django.db import models

from books.models.book import Book
from webhooks.models import Source


class MirroredBook(models.Model):
    """A book of another library and its copy here. Only `books.mirroring` writes it."""

    source = models.ForeignKey(Source, models.CASCADE, related_name="mirrored_books", db_index=False)
    # The book's id in the other library, and its version after the latest event. A deletion increases the version.
    remote_id = models.BigIntegerField()
    version = models.BigIntegerField()
    # None after the copy is deleted. The row stays, so that a late event does not add the book again. It stores the
    # copy's former id, so that a later event can restore the copy.
    book = models.OneToOneField(Book, models.CASCADE, null=True, related_name="mirrored")
    former_book_id = models.BigIntegerField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "remote_id"], name="mirrored_once")]

    def __str__(self) -> str:
        return f"book {self.remote_id} of {self.source}"

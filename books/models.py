"""The book, and what must be true of every one of them."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Left, Length
from django.db.models.lookups import LessThanOrEqual

from books.fields import FoldedField, TimestampField

LENGTHS = {"title": 1000, "author": 500, "isbn": 64, "genre": 200}
YEARS = (-(2**31), 2**31 - 1)
# An index row of PostgreSQL holds some 2,700 bytes; 100 characters stay below it in any script.
SORT_KEY_LENGTH = 100


def sort_key(field: str) -> Left:
    """What a list is sorted by: the folded text, bounded as its index is."""
    return Left(f"{field}_folded", SORT_KEY_LENGTH)


def at_most(field: str, length: int) -> models.CheckConstraint:
    """SQLite does not hold a column to its length."""
    return models.CheckConstraint(
        condition=LessThanOrEqual(Length(field), length), name=f"book_{field}_at_most_{length}"
    )


class Book(models.Model):
    """A book of the library. Written by `books.changes` alone, which raises `version` with every change."""

    title = models.CharField(max_length=LENGTHS["title"])
    author = models.CharField(max_length=LENGTHS["author"])
    year = models.IntegerField(validators=[MinValueValidator(YEARS[0]), MaxValueValidator(YEARS[1])])
    isbn = models.CharField(
        "ISBN", max_length=LENGTHS["isbn"], unique=True, error_messages={"unique": "Another book has this ISBN."}
    )
    genre = models.CharField(max_length=LENGTHS["genre"])
    available = models.BooleanField(default=True, db_default=True)
    created_at = TimestampField("added (UTC)", editable=False)
    updated_at = TimestampField("changed (UTC)", editable=False)
    version = models.PositiveIntegerField(default=1, db_default=1, editable=False)
    title_folded = FoldedField("title")
    author_folded = FoldedField("author")
    genre_folded = FoldedField("genre")

    class Meta:
        constraints = [
            *(at_most(field, length) for field, length in LENGTHS.items()),
            models.CheckConstraint(condition=models.Q(year__range=YEARS), name="book_year_within_32_bits"),
        ]
        indexes = [
            models.Index(sort_key("title"), "id", name="book_by_title"),
            models.Index(sort_key("author"), "id", name="book_by_author"),
            models.Index("year", "id", name="book_by_year"),
            models.Index("created_at", "id", name="book_by_created_at"),
            models.Index("id", name="book_lent", condition=models.Q(available=False)),
        ]

    def __str__(self) -> str:
        return f"{self.title} ({self.author}, {self.year})"


# Each searched member's folded column.
FOLDED = {field.of: field.name for field in Book._meta.concrete_fields if isinstance(field, FoldedField)}

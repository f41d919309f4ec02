"""The book, and what must be true of every one of them."""

from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Left, Length
from django.db.models.lookups import LessThanOrEqual

from books.fields import DerivedField, FoldedField, ISBN13Field, TimestampField
from webhooks.models import Source

MAX_LENGTHS = {"title": 1000, "author": 500, "isbn": 64, "genre": 200}
YEAR_RANGE = (-(2**31), 2**31 - 1)
# An index row of PostgreSQL holds some 2,700 bytes; 100 characters stay below it in any script.
SORT_PREFIX_LENGTH = 100


def sort_prefix(field: str) -> Left:
    """The folded text as far as an index holds it."""
    return Left(f"{field}_folded", SORT_PREFIX_LENGTH)


class SortPrefix(models.Func):
    """`bounded` with its length written out: SQLite takes an index of an expression for the very same one alone."""

    template = f"LEFT(%(expressions)s, {SORT_PREFIX_LENGTH})"
    output_field = models.TextField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(
            compiler, connection, template=f"SUBSTR(%(expressions)s, 1, {SORT_PREFIX_LENGTH})", **context
        )


def sort_expression(field: str) -> SortPrefix:
    """What a list is sorted by: the folded text, bounded as its index is."""
    return SortPrefix(f"{field}_folded")


def max_length_check(field: str, length: int) -> models.CheckConstraint:
    """SQLite does not hold a column to its length."""
    return models.CheckConstraint(
        condition=LessThanOrEqual(Length(field), length), name=f"book_{field}_at_most_{length}"
    )


class Book(models.Model):
    """A book of the library. Written by `books.changes` alone, which raises `version` with every change."""

    title = models.CharField(max_length=MAX_LENGTHS["title"])
    author = models.CharField(max_length=MAX_LENGTHS["author"])
    year = models.IntegerField(validators=[MinValueValidator(YEAR_RANGE[0]), MaxValueValidator(YEAR_RANGE[1])])
    isbn = models.CharField(
        "ISBN", max_length=MAX_LENGTHS["isbn"], unique=True, error_messages={"unique": "Another book has this ISBN."}
    )
    isbn13 = ISBN13Field("isbn")
    genre = models.CharField(max_length=MAX_LENGTHS["genre"])
    available = models.BooleanField(default=True, db_default=True)
    created_at = TimestampField("added (UTC)", editable=False)
    updated_at = TimestampField("changed (UTC)", editable=False)
    version = models.PositiveIntegerField(default=1, db_default=1, editable=False)
    title_folded = FoldedField("title")
    author_folded = FoldedField("author")
    genre_folded = FoldedField("genre")

    class Meta:
        constraints = [
            *(max_length_check(field, length) for field, length in MAX_LENGTHS.items()),
            models.CheckConstraint(condition=models.Q(year__range=YEAR_RANGE), name="book_year_within_32_bits"),
        ]
        indexes = [
            models.Index(sort_prefix("title"), "id", name="book_by_title"),
            models.Index(sort_prefix("author"), "id", name="book_by_author"),
            models.Index("year", "id", name="book_by_year"),
            models.Index("created_at", "id", name="book_by_created_at"),
            models.Index("isbn13", "id", name="book_by_isbn13"),
            models.Index("id", name="book_lent", condition=models.Q(available=False)),
        ]

    def __str__(self) -> str:
        return f"{self.title} ({self.author}, {self.year})"


DERIVED_FIELDS = [field for field in Book._meta.concrete_fields if isinstance(field, DerivedField)]
# Each searched member's folded column.
FOLDED_COLUMNS = {field.source: field.name for field in Book._meta.concrete_fields if isinstance(field, FoldedField)}


class StoredResponse(models.Model):
    """What was answered to a request with an Idempotency-Key; written by `books.api.idempotency` alone."""

    # SHA-256 of the caller and the key, and of the request.
    key = models.CharField(max_length=64, primary_key=True)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    headers = models.JSONField()
    body = models.BinaryField()
    stored_at = TimestampField(db_index=True, db_column="kept_at")

    class Meta:
        db_table = "books_keptanswer"

    def __str__(self) -> str:
        return f"{self.status}, stored at {self.stored_at}"


class MirroredBook(models.Model):
    """A book of another library and the one that stands for it here; written by `books.mirroring` alone."""

    source = models.ForeignKey(Source, models.CASCADE, related_name="mirrored_books", db_index=False)
    # The book's id there, and the version that it was last told of in.
    remote_id = models.BigIntegerField()
    version = models.BigIntegerField()
    # None once it was deleted there, lest an event that comes late brings it back.
    book = models.OneToOneField(Book, models.CASCADE, null=True, related_name="mirrored")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "remote_id"], name="mirrored_once")]

    def __str__(self) -> str:
        return f"book {self.remote_id} of {self.source}"

"""The table of books, and the tables of additional facts about them and of their numbers."""

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from django.core import checks
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Left, Length
from django.db.models.lookups import LessThanOrEqual
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from books.book.fields import FIELDS, MAX_LENGTHS
from books.book.match_keys import MatchKey
from books.fields import DerivedField, FoldedField, ISBN13Field, ISBNField, TimestampField
from library_site.http.api_errors import RefusedWrite

YEAR_RANGE = (-(2**31), 2**31 - 1)
# An index row of PostgreSQL holds about 2,700 bytes; 100 characters of any script fit in it.
SORT_PREFIX_LENGTH = 100


class SortPrefix(models.Func):
    """The indexed part of a folded text. SQLite uses the index only for the same expression, so the length is a
    literal.
    """

    template = f"LEFT(%(expressions)s, {SORT_PREFIX_LENGTH})"
    output_field = models.TextField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(
            compiler, connection, template=f"SUBSTR(%(expressions)s, 1, {SORT_PREFIX_LENGTH})", **context
        )


def sort_expression(field: str) -> SortPrefix:
    """The expression that sorts a list: the same part of the folded text as in the index."""
    return SortPrefix(f"{field}_folded")


def build_length_check(field: str, length: int) -> models.CheckConstraint:
    """Limits the length of a column, because SQLite does not."""
    return models.CheckConstraint(
        condition=LessThanOrEqual(Length(field), length), name=f"book_{field}_at_most_{length}"
    )


class UnrecordedWrite(RefusedWrite):
    """Django code tried to write books without a version, history and event. The message names the function to use."""


def build_refusing_method(name: str, instead: str) -> Callable[..., NoReturn]:
    """Returns a method that raises UnrecordedWrite."""

    def method(*_: Any, **__: Any) -> NoReturn:
        raise UnrecordedWrite(f"{name} is refused for books: it leaves no new version, history or event. {instead}")

    return method


class BookQuerySet(models.QuerySet["Book"]):
    """Reads books, and creates single books. `books.writing.changes` writes many through `Book._base_manager`."""

    SAVE_EACH = "Change each book and call its save(), or edit many in the admin or by POST /api/v2/operations."
    CREATE_EACH = "Call Book.objects.create() for each book, or import a file with manage.py import_books."
    DELETE_EACH = "Call delete() of each book, or delete many in the admin or by POST /api/v2/operations."

    update = build_refusing_method("update()", SAVE_EACH)
    _update = build_refusing_method("_update()", SAVE_EACH)
    bulk_update = build_refusing_method("bulk_update()", SAVE_EACH)
    bulk_create = build_refusing_method("bulk_create()", CREATE_EACH)
    _insert = build_refusing_method("_insert()", CREATE_EACH)
    delete = build_refusing_method("delete() of a queryset", DELETE_EACH)
    _raw_delete = build_refusing_method("_raw_delete()", DELETE_EACH)


class Book(models.Model):
    """A book of the library. Only `books.writing.changes` writes it. Every change increases `version`."""

    title = models.CharField(_("title"), max_length=MAX_LENGTHS["title"])
    author = models.CharField(_("author"), max_length=MAX_LENGTHS["author"])
    year = models.IntegerField(
        _("year"), validators=[MinValueValidator(YEAR_RANGE[0]), MaxValueValidator(YEAR_RANGE[1])]
    )
    isbn = ISBNField(
        _("ISBN"),
        max_length=MAX_LENGTHS["isbn"],
        unique=True,
        error_messages={"unique": _("Another book has this ISBN.")},
    )
    isbn13 = ISBN13Field("isbn")
    genre = models.CharField(_("genre"), max_length=MAX_LENGTHS["genre"])
    available = models.BooleanField(_("available"), default=True, db_default=True)
    created_at = TimestampField(_("added"), editable=False)
    updated_at = TimestampField(_("changed"), editable=False)
    version = models.PositiveIntegerField(default=1, db_default=1, editable=False)
    title_folded = FoldedField("title")
    author_folded = FoldedField("author")
    genre_folded = FoldedField("genre")

    objects = BookQuerySet.as_manager()

    class Meta:
        verbose_name, verbose_name_plural = _("book"), _("books")
        constraints = [
            *(build_length_check(field, length) for field, length in MAX_LENGTHS.items()),
            models.CheckConstraint(condition=models.Q(year__range=YEAR_RANGE), name="book_year_within_32_bits"),
        ]
        indexes = [
            models.Index(Left("title_folded", SORT_PREFIX_LENGTH), "id", name="book_by_title"),
            models.Index(Left("author_folded", SORT_PREFIX_LENGTH), "id", name="book_by_author"),
            models.Index("year", "id", name="book_by_year"),
            models.Index(Left("genre_folded", SORT_PREFIX_LENGTH), "id", name="book_by_genre"),
            models.Index("created_at", "id", name="book_by_created_at"),
            models.Index("isbn13", "id", name="book_by_isbn13"),
        ]

    def __str__(self) -> str:
        return f"{self.title} ({self.author}, {self.year})"

    @classmethod
    def check(cls, **options: Any) -> list[checks.CheckMessage]:
        """Also reports a manager, of a proxy for example, whose querysets would write books without history."""
        unguarded = [one for one in cls._meta.managers if not isinstance(one.get_queryset(), BookQuerySet)]
        message, hint = "{} writes books without their history.", "Use models.Manager.from_queryset(BookQuerySet)."
        return [
            *super().check(**options),
            *(checks.Error(message.format(one), hint=hint, obj=cls, id="books.E002") for one in unguarded),
        ]

    def save_base(
        self,
        raw: bool = False,
        force_insert: bool | tuple[Any, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> None:
        """Django's `save` calls this. Writes with history and event; sends `post_save`, but not `pre_save`."""
        if self._meta.concrete_model is not Book:
            raise UnrecordedWrite("A model that inherits from Book is not saved. Give it a OneToOneField to Book.")
        from books.writing.instances import save_instance

        save_instance(self, using, bool(force_insert), force_update, update_fields)

    def _save_table(self, raw: bool, cls: Any, insert: Any, update: bool, using: str | None, *_: Any) -> bool:
        """A fixture calls Django's `save_base`, which calls this, and sends the signals."""
        from books.writing.instances import load_instance

        load_instance(self, using)
        return False

    def delete(self, using: str | None = None, keep_parents: bool = False) -> tuple[int, dict[str, int]]:
        """Deletes with history and event. Sends `post_delete`, but not `pre_delete`."""
        from books.writing.instances import delete_instance

        return delete_instance(self, using or self._state.db)


DERIVED_FIELDS = [field for field in Book._meta.concrete_fields if isinstance(field, DerivedField)]
FIELD_DEFAULTS = {
    field.name: field.default for field in Book._meta.concrete_fields if field.name in FIELDS and field.has_default()
}
# The folded column of each searchable field.
FOLDED_COLUMNS = {field.source: field.name for field in Book._meta.concrete_fields if isinstance(field, FoldedField)}


class LentBook(models.Model):
    """A book that is not available. Triggers on the book table maintain these rows (`books.search.triggers`).

    With an index on `available` instead, each loan would write all indexes of its book.
    """

    book = models.OneToOneField(Book, models.DO_NOTHING, primary_key=True, db_constraint=False, related_name="+")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.pk)


class SearchText(models.Model):
    """The texts of a book as people type them (`books.book.texts`), maintained by triggers on the book table.

    A table of its own, because PostgreSQL would write the index of a book's texts at each change of the book.
    """

    book = models.OneToOneField(Book, models.DO_NOTHING, primary_key=True, db_constraint=False, related_name="+")
    title = models.TextField()
    author = models.TextField()
    genre = models.TextField()
    # The strictly folded texts, a line for each, if they are other ones.
    strict = models.TextField()
    # False if a trigger has entered texts that `books.search.search_texts` has yet to fold.
    is_folded = models.BooleanField()

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index("book", condition=models.Q(is_folded=False), name="search_text_to_fold"),
            models.Index(MatchKey(), "book", name="search_text_by_match_key"),
        ]

    def __str__(self) -> str:
        return str(self.pk)


class DistinctBooks(models.Model):
    """Two books that look like duplicates, but that a librarian marked as different. The older one comes first.

    No foreign keys are needed, because ids are never reused.
    """

    first_id = models.BigIntegerField()
    second_id = models.BigIntegerField()

    class Meta:
        default_permissions = ()
        permissions = [("merge_books", gettext_noop("Can merge books"))]
        constraints = [models.UniqueConstraint(fields=["first_id", "second_id"], name="distinct_books")]

    def __str__(self) -> str:
        return f"books {self.first_id} and {self.second_id}"


class Summary(models.Model):
    """Numbers about all books or changes, when they were counted, and how many seconds it took (`books.summaries`)."""

    name = models.CharField(max_length=20, primary_key=True)
    numbers = models.JSONField()
    counted_at = models.DateTimeField()
    seconds = models.FloatField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.name

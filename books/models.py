"""The tables of books, of their changes, of stored responses and of mirrored books."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NoReturn, Protocol

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import NotSupportedError, models
from django.db.models import Q
from django.db.models.functions import Left, Length
from django.db.models.lookups import LessThanOrEqual
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from books.fields import DerivedField, FoldedField, ISBN13Field, ISBNField, TimestampField
from books.members import MAX_LENGTHS, MEMBERS
from library_site.jobs.leases import LeasedModel
from webhooks.models import Source

YEAR_RANGE = (-(2**31), 2**31 - 1)
# An index row of PostgreSQL holds about 2,700 bytes; 100 characters of any script fit in it.
SORT_PREFIX_LENGTH = 100


def sort_prefix(field: str) -> Left:
    """The part of the folded text that an index holds."""
    return Left(f"{field}_folded", SORT_PREFIX_LENGTH)


class SortPrefix(models.Func):
    """`sort_prefix` with a literal length: SQLite uses an expression index only for exactly the same expression."""

    template = f"LEFT(%(expressions)s, {SORT_PREFIX_LENGTH})"
    output_field = models.TextField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(
            compiler, connection, template=f"SUBSTR(%(expressions)s, 1, {SORT_PREFIX_LENGTH})", **context
        )


def sort_expression(field: str) -> SortPrefix:
    """What a list is sorted by: the same part of the folded text as in its index."""
    return SortPrefix(f"{field}_folded")


def max_length_check(field: str, length: int) -> models.CheckConstraint:
    """Limits a column to its length, because SQLite does not."""
    return models.CheckConstraint(
        condition=LessThanOrEqual(Length(field), length), name=f"book_{field}_at_most_{length}"
    )


class UnrecordedWrite(NotSupportedError):
    """A way of Django to write books that leaves no version, history or event. The message names what to call."""


def make_refusing_method(name: str, instead: str) -> Callable[..., NoReturn]:
    """Returns a method that raises UnrecordedWrite."""

    def method(*_: Any, **__: Any) -> NoReturn:
        raise UnrecordedWrite(f"{name} is refused for books: it leaves no new version, history or event. {instead}")

    return method


class BookQuerySet(models.QuerySet["Book"]):
    """Reads books, and creates them one by one. `books.writing.changes` writes many through `Book._base_manager`."""

    SAVE_EACH = "Change each book and call its save(), or edit many in the admin or by POST /api/v2/operations."
    CREATE_EACH = "Call Book.objects.create() for each book, or import a file with manage.py import_books."
    DELETE_EACH = "Call delete() of each book, or delete many in the admin or by POST /api/v2/operations."

    update = make_refusing_method("update()", SAVE_EACH)
    _update = make_refusing_method("_update()", SAVE_EACH)
    bulk_update = make_refusing_method("bulk_update()", SAVE_EACH)
    bulk_create = make_refusing_method("bulk_create()", CREATE_EACH)
    _insert = make_refusing_method("_insert()", CREATE_EACH)
    delete = make_refusing_method("delete() of a queryset", DELETE_EACH)
    _raw_delete = make_refusing_method("_raw_delete()", DELETE_EACH)


class BookWriter(Protocol):
    """What `save` and `delete` of a book do. `books.writing.instances` does it, and registers itself here."""

    def save_book(
        self, book: "Book", *, force_insert: bool, force_update: bool, update_fields: Iterable[str] | None
    ) -> None: ...

    def delete_book(self, book: "Book") -> int: ...


class Book(models.Model):
    """A book of the library. Only `books.writing.changes` writes it, and increases `version` with every change."""

    # Set when the apps are ready.
    writer: ClassVar[BookWriter]

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
            *(max_length_check(field, length) for field, length in MAX_LENGTHS.items()),
            models.CheckConstraint(condition=models.Q(year__range=YEAR_RANGE), name="book_year_within_32_bits"),
        ]
        indexes = [
            models.Index(sort_prefix("title"), "id", name="book_by_title"),
            models.Index(sort_prefix("author"), "id", name="book_by_author"),
            models.Index("year", "id", name="book_by_year"),
            models.Index(sort_prefix("genre"), "id", name="book_by_genre"),
            models.Index("created_at", "id", name="book_by_created_at"),
            models.Index("isbn13", "id", name="book_by_isbn13"),
        ]

    def __str__(self) -> str:
        return f"{self.title} ({self.author}, {self.year})"

    def save(
        self,
        *,
        force_insert: bool | tuple[Any, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> None:
        """Writes with history and event (`books.writing.instances`), and sends `post_save`, but not `pre_save`."""
        self.writer.save_book(
            self, force_insert=bool(force_insert), force_update=force_update, update_fields=update_fields
        )

    def delete(self, using: str | None = None, keep_parents: bool = False) -> tuple[int, dict[str, int]]:
        """Deletes with history and event, and sends `post_delete`, but not `pre_delete`."""
        count = self.writer.delete_book(self)
        return count, {self._meta.label: count}

    # What fixtures call, past `save`.
    _save_table = make_refusing_method(
        "save_base(), which loads fixtures,",
        "Import books with manage.py import_books, or restore a backup and run manage.py after_restore.",
    )


class LentBook(models.Model):
    """A book that is not available. Triggers of the book table keep these rows (`books.search.triggers`).

    An index on `available` in their place would make each loan write all indexes of its book.
    """

    book = models.OneToOneField(Book, models.DO_NOTHING, primary_key=True, db_constraint=False, related_name="+")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.pk)


class SavedView(models.Model):
    """A list of books to which a person comes back: a query of its address, and the names of its columns.

    All librarians see one that is shared; only who made it changes it.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_views", db_index=False)
    name = models.CharField(max_length=100)
    query = models.TextField()
    columns = models.JSONField()
    is_shared = models.BooleanField(default=False, db_default=False)

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="saved_view_name")]

    def __str__(self) -> str:
        return self.name


class ListSettings(models.Model):
    """How a person sees the list of books: the names of its columns, the rows of a page, and what it opens with."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="list_settings"
    )
    columns = models.JSONField()
    rows = models.PositiveSmallIntegerField()
    default_view = models.ForeignKey(SavedView, models.SET_NULL, null=True, related_name="+")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{', '.join(self.columns)}; {self.rows} rows"


DERIVED_FIELDS = [field for field in Book._meta.concrete_fields if isinstance(field, DerivedField)]
# The folded column of each member that can be searched.
MEMBER_DEFAULTS = {
    field.name: field.default for field in Book._meta.concrete_fields if field.name in MEMBERS and field.has_default()
}
FOLDED_COLUMNS = {field.source: field.name for field in Book._meta.concrete_fields if isinstance(field, FoldedField)}


class Actor(models.Model):
    """Who changes books, and through what. One row for each combination, with the names at its first change.

    Only `books.history.actors` adds rows. They refer to nothing, because they outlive what they name.
    """

    # Labels are English, for programs too; pages translate them.
    class Channel(models.TextChoices):
        V1 = "v1", gettext_noop("API, version 1")
        V2 = "v2", gettext_noop("API, version 2")
        BULK = "bulk", gettext_noop("bulk request")
        ADMIN = "admin", gettext_noop("admin")
        IMPORT = "import", gettext_noop("import")
        COMMAND = "command", gettext_noop("command line")
        MIRROR = "mirror", gettext_noop("mirroring")
        OPERATION = "operation", gettext_noop("operation")

    channel = models.CharField(max_length=10, choices=Channel)
    user_id = models.BigIntegerField(null=True, db_index=True)
    # The text of the columns above and of the ids of the app, the API key and the source.
    identity = models.CharField(max_length=300, unique=True)
    user_name = models.CharField(max_length=150, blank=True)
    app_name = models.CharField(max_length=255, blank=True)
    api_key_name = models.CharField(max_length=100, blank=True)
    source_name = models.CharField(max_length=100, blank=True)

    def __str__(self) -> str:
        names = [self.user_name, self.app_name, self.api_key_name, self.source_name]
        return " · ".join(filter(None, [*names, self.get_channel_display()]))


class Operation(LeasedModel):
    """What makes many changes together: a request of the interface, an import, or an action of the admin.

    A worker of `books.operations` leases those that wait and goes on from `cursor`. The others were done in the request
    that made them; of these, what nobody counted is null.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        CANCELLED = "cancelled", _("cancelled")
        FAILED = "failed", _("failed")

    kind = models.CharField(max_length=20)
    actor = models.ForeignKey(Actor, models.DO_NOTHING, db_constraint=False, db_index=False)
    created_at = TimestampField()
    state = models.CharField(max_length=10, choices=State, default=State.DONE, db_default=State.DONE)
    # What a task of the kind needs to know (`books.operations.tasks`).
    parameters = models.JSONField(null=True)
    # Which form asked for it: a form that is sent twice makes one operation.
    token = models.CharField(max_length=64, null=True)  # noqa: DJ001  # unique, where there is one
    undo_of = models.ForeignKey(
        "self", models.DO_NOTHING, null=True, related_name="undos", db_constraint=False, db_index=False
    )
    # The key of the last item that is done, and of the last one to do.
    cursor = models.BigIntegerField(null=True)
    last = models.BigIntegerField(null=True)
    # The number of items to do; those of them that changed something, had nothing to change, could not be done, and
    # were no longer there to be done.
    matched = models.IntegerField(null=True)
    changed = models.IntegerField(null=True)
    unchanged = models.IntegerField(null=True)
    refused = models.IntegerField(null=True)
    missed = models.IntegerField(null=True)
    started_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True, default="", db_default="")
    # What the task found, in a form of its own, such as the numbers of records by what becomes of them.
    result = models.JSONField(null=True)
    # Null if nothing is to be done, unlike in other queues: most operations are done when they are stored.
    next_at = models.DateTimeField(null=True)

    class Meta:
        permissions = [
            ("bulk_edit_books", gettext_noop("Can edit many books together")),
            ("undo_others_operations", gettext_noop("Can cancel and undo the operations of others")),
        ]
        constraints = [
            models.UniqueConstraint(fields=["token"], name="operation_token", condition=Q(token__isnull=False)),
            models.UniqueConstraint(
                fields=["undo_of"],
                name="operation_undo",
                condition=Q(undo_of__isnull=False) & Q(state__in=["waiting", "running", "done"]),
            ),
        ]
        indexes = [
            models.Index("next_at", name="operation_waiting", condition=Q(next_at__isnull=False)),
            models.Index("actor", "id", name="operation_actor"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class OperationProblem(models.Model):
    """Something that an operation left as it was, and why. Of an operation no more than MAX_PROBLEMS are kept."""

    class Reason(models.TextChoices):
        NO_MATCH = "no_match", _("no longer matched")
        ISBN_IN_USE = "isbn_in_use", _("another book has the ISBN")
        INVALID = "invalid", _("the new text is empty or too long")
        CHANGED = "changed_since", _("changed since")
        DELETED = "deleted_since", _("deleted since")
        EXISTS = "exists", _("restored since")

    operation = models.ForeignKey(Operation, models.CASCADE, related_name="problems", db_index=False)
    # The id of a book or, of an import, the number of a row.
    subject = models.BigIntegerField()
    reason = models.CharField(max_length=20, choices=Reason)
    detail = models.CharField(max_length=500, blank=True)

    class Meta:
        default_permissions = ()
        indexes = [models.Index("operation", "id", name="operation_problems")]

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"


class Change(models.Model):
    """A change of a book: the members that changed, before and after. Only `books.writing.statements` adds rows."""

    class Kind(models.IntegerChoices):
        CREATED = 1, gettext_noop("created")
        CHANGED = 2, gettext_noop("changed")
        DELETED = 3, gettext_noop("deleted")
        RESTORED = 4, gettext_noop("restored")
        MERGED = 5, gettext_noop("merged")

    # No foreign key: a change outlives its book. The actor has none in the database, where each check would lock the
    # actor's row.
    book_id = models.BigIntegerField()
    # The version of the book after the change. A deletion is a version of its own.
    version = models.PositiveIntegerField()
    kind = models.PositiveSmallIntegerField(choices=Kind)
    at = TimestampField()
    actor = models.ForeignKey(Actor, models.DO_NOTHING, db_constraint=False, db_index=False)
    operation = models.ForeignKey(Operation, models.DO_NOTHING, null=True, db_constraint=False, db_index=False)
    # The values of the members that changed; of a deleted book all. None after a book was created or restored.
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    class Meta:
        default_permissions = ()
        permissions = [("view_history", gettext_noop("Can view the history of books"))]
        constraints = [models.UniqueConstraint(fields=["book_id", "version"], name="change_version")]
        indexes = [
            models.Index("at", "id", name="change_by_time"),
            models.Index("actor", "at", "id", name="change_by_actor"),
            models.Index("kind", "at", "id", name="change_by_kind"),
            models.Index("operation", "id", name="change_by_operation", condition=models.Q(operation__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"book {self.book_id}, version {self.version}: {self.get_kind_display()}"


class Summary(models.Model):
    """Numbers about all books or changes, when they were counted, and the seconds that it took (`books.summaries`)."""

    name = models.CharField(max_length=20, primary_key=True)
    numbers = models.JSONField()
    counted_at = models.DateTimeField()
    seconds = models.FloatField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.name


class DistinctBooks(models.Model):
    """Two books that look like one, and of which a librarian said that they are two; the older one is the first.

    No foreign keys: ids are never given to other books.
    """

    first_id = models.BigIntegerField()
    second_id = models.BigIntegerField()

    class Meta:
        default_permissions = ()
        permissions = [("merge_books", gettext_noop("Can merge books"))]
        constraints = [models.UniqueConstraint(fields=["first_id", "second_id"], name="distinct_books")]

    def __str__(self) -> str:
        return f"books {self.first_id} and {self.second_id}"


class ImportFile(models.Model):
    """A file that a librarian uploads to import it. Only `books.files.uploads` and the tasks of imports write it.

    It is deleted after some days, with what was found in it. One without a user is a command's, which deletes it.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="import_files")
    name = models.CharField(max_length=255)
    size = models.BigIntegerField()
    # What tells the browser that it is the same file, to go on with an upload that was cut off.
    fingerprint = models.CharField(max_length=300)
    created_at = TimestampField(db_index=True)
    # The key of an encoding, empty for the one that is found.
    encoding = models.CharField(max_length=20, blank=True)
    # ImportRules of the latest check; null until the librarian chose them.
    rules = models.JSONField(null=True)
    # The latest look into the file, the latest check and, once that is confirmed, the import.
    preview_operation = models.ForeignKey(
        Operation, models.SET_NULL, null=True, related_name="+", db_constraint=False, db_index=False
    )
    check_operation = models.ForeignKey(
        Operation, models.SET_NULL, null=True, related_name="+", db_constraint=False, db_index=False
    )
    import_operation = models.ForeignKey(
        Operation, models.SET_NULL, null=True, related_name="+", db_constraint=False, db_index=False
    )
    # Not read any more: the operations have these numbers. Processes of the release before write them.
    check_counts = models.JSONField(default=dict)
    import_counts = models.JSONField(default=dict)

    class Meta:
        default_permissions = ()
        permissions = [("import_books", gettext_noop("Can import books"))]

    def __str__(self) -> str:
        return self.name


class ImportChunk(models.Model):
    """A part of a file: all but the last have PART_BYTES (`books.files.uploads`)."""

    file = models.ForeignKey(ImportFile, models.CASCADE, related_name="chunks", db_index=False)
    number = models.PositiveIntegerField()
    content = models.BinaryField()

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["file", "number"], name="import_chunk_number")]

    def __str__(self) -> str:
        return f"part {self.number} of {self.file_id}"


class ImportFinding(models.Model):
    """What becomes of a record: all that come back, and samples of the others."""

    file = models.ForeignKey(ImportFile, models.CASCADE, related_name="findings", db_index=False)
    # The operation that found it, a check or the import.
    operation_id = models.BigIntegerField()
    kind = models.CharField(max_length=10)
    # The number of the record in the file, from 1, and the line on which it begins.
    position = models.BigIntegerField()
    line = models.BigIntegerField()
    reason = models.TextField(blank=True)
    # The book that it matches, and the members that change, before and after.
    book_id = models.BigIntegerField(null=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    class Meta:
        default_permissions = ()
        indexes = [models.Index("file", "operation_id", "kind", "position", name="import_finding")]

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind}"


class ImportCorrection(models.Model):
    """A cell that a check asks to correct. The import of that check takes the values that there are."""

    file = models.ForeignKey(ImportFile, models.CASCADE, related_name="corrections", db_index=False)
    # The check, which has corrections of its own: those before go.
    operation_id = models.BigIntegerField()
    # The number of the record in the file, from 1.
    position = models.BigIntegerField()
    member = models.CharField(max_length=20)
    # What somebody wrote instead of what the file has; null until then.
    value = models.TextField(null=True)  # noqa: DJ001

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["file", "operation_id", "position", "member"], name="import_correction_cell"
            )
        ]

    def __str__(self) -> str:
        return f"{self.member} of record {self.position}"


class ExportChunk(models.Model):
    """A part of a workbook that an operation wrote (`books.files.export_tasks`). It is deleted after some days."""

    operation = models.ForeignKey(Operation, models.CASCADE, related_name="export_chunks", db_index=False)
    number = models.PositiveIntegerField()
    content = models.BinaryField()
    created_at = TimestampField(db_index=True)

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["operation", "number"], name="export_chunk_number")]

    def __str__(self) -> str:
        return f"part {self.number} of the export {self.operation_id}"


class ColumnMapping(models.Model):
    """The columns of the members that a person chose, or anybody chose last, for files with this header."""

    # SHA-256 of the columns, and of the person.
    header = models.CharField(max_length=64, primary_key=True)
    mapping = models.JSONField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.header


class StoredResponse(models.Model):
    """The response to a request with an Idempotency-Key. Only `books.api.idempotency` writes it."""

    # `key` is the SHA-256 of the caller and the key of the request, `fingerprint` that of the request.
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
    """A book of another library and its copy here. Only `books.mirroring` writes it."""

    source = models.ForeignKey(Source, models.CASCADE, related_name="mirrored_books", db_index=False)
    # The book's id in the other library, and its version there after the latest event about it: a deletion is one more.
    remote_id = models.BigIntegerField()
    version = models.BigIntegerField()
    # None after the copy is deleted. The row stays, so that a late event does not add the book again, with the id that
    # the copy had, so that a later one brings it back.
    book = models.OneToOneField(Book, models.CASCADE, null=True, related_name="mirrored")
    former_book_id = models.BigIntegerField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "remote_id"], name="mirrored_once")]

    def __str__(self) -> str:
        return f"book {self.remote_id} of {self.source}"

"""The changes of books, and their actors."""

from typing import Any

from django.db import models
from django.utils.translation import gettext_noop

from books.fields import TimestampField
from books.models.operations import Operation


class Actor(models.Model):
    """Who changes books, and through which channel. One row for each combination, with the names at its first change.

    Only `books.history.actors` adds rows. They have no foreign keys, because they outlive what they name.
    """

    # Labels are English, because programs read them too. Pages translate them.
    class Channel(models.TextChoices):
        V1 = "v1", gettext_noop("API, version 1")
        V2 = "v2", gettext_noop("API, version 2")
        BULK = "bulk", gettext_noop("bulk request")
        ADMIN = "admin", gettext_noop("admin")
        IMPORT = "import", gettext_noop("import")
        COMMAND = "command", gettext_noop("command line")
        # What releases before 1.2 copied from other libraries.
        MIRROR = "mirror", gettext_noop("mirroring")
        OPERATION = "operation", gettext_noop("change of many books")

    channel = models.CharField(max_length=10, choices=Channel)
    user_id = models.BigIntegerField(null=True, db_index=True)
    # The columns above, and the ids of the app, the API key and the source, as one text.
    identity = models.CharField(max_length=300, unique=True)
    user_name = models.CharField(max_length=150, blank=True)
    app_name = models.CharField(max_length=255, blank=True)
    api_key_name = models.CharField(max_length=100, blank=True)
    source_name = models.CharField(max_length=100, blank=True)

    def __str__(self) -> str:
        names = [self.user_name, self.app_name, self.api_key_name, self.source_name]
        return " · ".join(filter(None, [*names, self.get_channel_display()]))


# How databases write the values after a lend and after a return: PostgreSQL with a blank, SQLite as they were stored.
LEND_TEXTS = ('{"available": false}', '{"available":false}')
RETURN_TEXTS = ('{"available": true}', '{"available":true}')


class IsLoan(models.Func):
    """Whether a change is a lend or a return, which changes the availability and nothing else.

    The texts are no parameters, because SQLite uses a partial index only for the condition that it was created with.
    """

    output_field = models.BooleanField()

    def __init__(self) -> None:
        super().__init__("after")

    def as_sql(self, compiler: Any, connection: Any, *_: Any, **__: Any) -> Any:
        column, _values = compiler.compile(self.get_source_expressions()[0])
        texts = ", ".join(f"'{text}'" for text in (*LEND_TEXTS, *RETURN_TEXTS))
        return f"(CAST({column} AS text) IN ({texts}))", []


class Change(models.Model):
    """A change of a book: the changed fields, before and after. Only `books.writing.statements` adds rows."""

    class Kind(models.IntegerChoices):
        CREATED = 1, gettext_noop("created")
        CHANGED = 2, gettext_noop("changed")
        DELETED = 3, gettext_noop("deleted")
        RESTORED = 4, gettext_noop("restored")
        MERGED = 5, gettext_noop("merged")

    # No foreign key, because a change outlives its book. For the actor the database has no constraint, because each
    # check would lock the actor's row.
    book_id = models.BigIntegerField()
    # The version of the book after the change. A deletion increases it, too.
    version = models.PositiveIntegerField()
    kind = models.PositiveSmallIntegerField(choices=Kind)
    at = TimestampField()
    actor = models.ForeignKey(Actor, models.DO_NOTHING, db_constraint=False, db_index=False)
    operation = models.ForeignKey(Operation, models.DO_NOTHING, null=True, db_constraint=False, db_index=False)
    # The values of the changed fields; all fields of a deleted book. `before` is None for a created or restored book.
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
            models.Index("at", "id", name="change_of_loan", condition=models.Q(IsLoan())),
        ]

    def __str__(self) -> str:
        return f"book {self.book_id}, version {self.version}: {self.get_kind_display()}"

"""The queue of operations, the items that they did not change, and their workbooks."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from books.fields import TimestampField
from library_site.jobs.leases import LeasedModel


class Operation(LeasedModel):
    """Several changes that belong together: a request of the API, an import, or an action in the admin.

    A worker of `books.operations` leases waiting operations and continues from `cursor`. Other operations run within
    their request; their numbers may be null.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        CANCELLED = "cancelled", _("cancelled")
        FAILED = "failed", _("failed")

    kind = models.CharField(max_length=20)
    actor = models.ForeignKey("books.Actor", models.DO_NOTHING, db_constraint=False, db_index=False)
    created_at = TimestampField()
    state = models.CharField(max_length=10, choices=State, default=State.DONE, db_default=State.DONE)
    # The parameters of the task (`books.operations.tasks`).
    parameters = models.JSONField(null=True)
    # Identifies the form: a form that is sent twice starts one operation.
    token = models.CharField(max_length=64, null=True)  # noqa: DJ001  # unique, where there is one
    undo_of = models.ForeignKey(
        "self", models.DO_NOTHING, null=True, related_name="undos", db_constraint=False, db_index=False
    )
    # The keys of the last finished item and of the last item.
    cursor = models.BigIntegerField(null=True)
    last = models.BigIntegerField(null=True)
    # The number of items, how many of them were changed, unchanged or refused, and how many others were missed (no
    # longer there). Until the operation is done, `matched` is the number of items at its start.
    matched = models.IntegerField(null=True)
    changed = models.IntegerField(null=True)
    unchanged = models.IntegerField(null=True)
    refused = models.IntegerField(null=True)
    missed = models.IntegerField(null=True)
    started_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True, default="", db_default="")
    # The task's own result, such as the number of records by verdict.
    result = models.JSONField(null=True)
    # Null if there is nothing to do. Unlike in other queues, most operations are finished when they are stored.
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
    """An item that an operation did not change, and why. At most MAX_PROBLEMS are stored for an operation."""

    class Reason(models.TextChoices):
        NO_MATCH = "no_match", _("no longer matched")
        ISBN_IN_USE = "isbn_in_use", _("another book has the ISBN")
        INVALID = "invalid", _("the new text is empty or too long")
        CHANGED = "changed_since", _("changed since")
        DELETED = "deleted_since", _("deleted since")
        EXISTS = "exists", _("restored since")
        PROTECTED = "protected", _("something else refers to it")

    operation = models.ForeignKey(Operation, models.CASCADE, related_name="problems", db_index=False)
    # The id of a book.
    subject = models.BigIntegerField()
    reason = models.CharField(max_length=20, choices=Reason)
    detail = models.CharField(max_length=500, blank=True)

    class Meta:
        default_permissions = ()
        indexes = [models.Index("operation", "id", name="operation_problems")]

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"


class ExportChunk(models.Model):
    """A chunk of an operation's workbook (`books.files.export_tasks`). It is deleted after some days."""

    operation = models.ForeignKey(Operation, models.CASCADE, related_name="export_chunks", db_index=False)
    number = models.PositiveIntegerField()
    content = models.BinaryField()
    created_at = TimestampField(db_index=True)

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["operation", "number"], name="export_chunk_number")]

    def __str__(self) -> str:
        return f"part {self.number} of the export {self.operation_id}"

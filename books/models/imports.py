"""Files that librarians upload, and the results of their checks and imports."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_noop

from books.fields import TimestampField
from books.models.operations import Operation


class ImportFile(models.Model):
    """A file that a librarian uploads for an import. Only `books.files.uploads` and the import tasks write it.

    It is deleted after some days, with its results. A file without a user belongs to a command, which deletes it.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="import_files")
    name = models.CharField(max_length=255)
    size = models.BigIntegerField()
    # The browser identifies the file by this text, to continue an interrupted upload.
    fingerprint = models.CharField(max_length=300)
    created_at = TimestampField(db_index=True)
    # The key of an encoding; empty to detect it.
    encoding = models.CharField(max_length=20, blank=True)
    # The ImportRules of the latest check; null until the librarian chooses them.
    rules = models.JSONField(null=True)
    # The latest preview, check and import. What an import rejects can be corrected, checked and imported again.
    preview_operation = models.ForeignKey(
        Operation, models.SET_NULL, null=True, related_name="+", db_constraint=False, db_index=False
    )
    check_operation = models.ForeignKey(
        Operation, models.SET_NULL, null=True, related_name="+", db_constraint=False, db_index=False
    )
    import_operation = models.ForeignKey(
        Operation, models.SET_NULL, null=True, related_name="+", db_constraint=False, db_index=False
    )
    # No longer read: the operations have these numbers. Processes of the previous release write them.
    check_counts = models.JSONField(default=dict)
    import_counts = models.JSONField(default=dict)

    class Meta:
        default_permissions = ()
        permissions = [("import_books", gettext_noop("Can import books"))]

    def __str__(self) -> str:
        return self.name

    @property
    def latest_operation(self) -> Operation | None:
        """The latest check or import. The page of the file shows it."""
        operations = [operation for operation in (self.check_operation, self.import_operation) if operation]
        return max(operations, key=lambda operation: operation.pk, default=None)


class ImportChunk(models.Model):
    """A chunk of a file. All but the last have CHUNK_BYTES (`books.files.uploads`)."""

    file = models.ForeignKey(ImportFile, models.CASCADE, related_name="chunks", db_index=False)
    number = models.PositiveIntegerField()
    content = models.BinaryField()

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["file", "number"], name="import_chunk_number")]

    def __str__(self) -> str:
        return f"part {self.number} of {self.file_id}"


class ImportFinding(models.Model):
    """The result for a record: for all rejected records, and for samples of the others."""

    file = models.ForeignKey(ImportFile, models.CASCADE, related_name="findings", db_index=False)
    # The check or import that produced it.
    operation_id = models.BigIntegerField()
    kind = models.CharField(max_length=10)
    # The number of the record in the file, from 1, and the line on which it begins.
    position = models.BigIntegerField()
    line = models.BigIntegerField()
    reason = models.TextField(blank=True)
    # The matching book, and the changed fields, before and after.
    book_id = models.BigIntegerField(null=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    class Meta:
        default_permissions = ()
        indexes = [models.Index("file", "operation_id", "kind", "position", name="import_finding")]

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind}"


class ImportCorrection(models.Model):
    """A cell that the user can correct on the page of a check or import; `books.files.corrections` has the rules."""

    file = models.ForeignKey(ImportFile, models.CASCADE, related_name="corrections", db_index=False)
    # The check that uses the correction, 0 before the next check. A new check moves all corrections to itself.
    operation_id = models.BigIntegerField()
    # The number of the record in the file, from 1.
    position = models.BigIntegerField()
    # A field of a book, or "accepted" for the warnings of the record.
    member = models.CharField(max_length=20)
    # The correction; null until a user enters one.
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


class ColumnMapping(models.Model):
    """The columns of the fields that a user chose for files with this header."""

    # SHA-256 of the columns and the user.
    header = models.CharField(max_length=64, primary_key=True)
    mapping = models.JSONField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.header

"""The stored responses to repeatable requests."""

from django.db import models

from books.fields import TimestampField


class StoredResponse(models.Model):
    """The response to a request with an Idempotency-Key. Only `books.api.idempotency` writes it."""

    # `key` is the SHA-256 of the caller and the Idempotency-Key; `fingerprint` is the SHA-256 of the request.
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

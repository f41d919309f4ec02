"""Numbers that a worker counts from time to time."""

from django.db import models


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

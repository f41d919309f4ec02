"""Users' settings for the list of books."""

from django.conf import settings
from django.db import models


class SavedView(models.Model):
    """A saved list of books: a query and the names of its columns.

    All librarians see a shared view; only its owner can change it.
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
    """A user's settings for the list of books: columns, rows per page, and default view."""

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

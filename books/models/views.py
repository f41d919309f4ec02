"""How people see the list of books."""

from django.conf import settings
from django.db import models


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

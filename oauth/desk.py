"""What every page of the admin is built on: it refuses what Django's own fails on, and counts no table to its end."""

from typing import Any, ClassVar, cast

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.functional import cached_property

COUNT_LIMIT = 10_000


class GuardedAdmin(admin.ModelAdmin):
    """Refuses what Django's admin fails on."""

    # Those of `list_filter`: Django would take any of any column, regular expressions among them.
    lookups: ClassVar[tuple[str, ...]] = ()

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        # PostgreSQL holds no NUL.
        return lookup in self.lookups and "\0" not in value

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any], *_: Any) -> HttpResponse | None:
        """Refuses ids that are none, and a deletion whose confirmation would list a million rows."""
        if not all(map(self.could_be_id, request.POST.getlist(ACTION_CHECKBOX_NAME))):
            words = "Nothing was changed: what was selected does not exist."
        elif deletes_all(request) and queryset[COUNT_LIMIT:].exists():
            words = f"Nothing was deleted: select {COUNT_LIMIT:,} at most."
        else:
            return super().response_action(request, queryset)
        self.message_user(request, words, messages.ERROR)
        return HttpResponseRedirect(request.get_full_path())

    def could_be_id(self, text: str) -> bool:
        try:
            self.opts.pk.clean(text, None)
        except ValidationError:
            return False
        return True


def deletes_all(request: HttpRequest) -> bool:
    across = [value for value in request.POST.getlist("select_across") if value not in ("", "0")]
    return "delete_selected" in request.POST.getlist("action") and bool(across)


class BoundedPaginator(Paginator):
    """Counts no further than anyone pages: a full count reads the whole table."""

    @cached_property
    def count(self) -> int:
        counted = cast("QuerySet[Any]", self.object_list).order_by()[: COUNT_LIMIT + 1].count()
        return Over(COUNT_LIMIT) if counted > COUNT_LIMIT else counted


class Over(int):
    """A count that stopped here."""

    def __str__(self) -> str:
        return f"over {int(self):,}"

"""What every page of the admin is built on: it refuses what Django's own fails on, and counts no table to its end."""

from collections.abc import Iterable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import ForeignKey, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from library_site.admin.paginator import MAX_COUNT, BoundedPaginator


class ValidatingAdmin(admin.ModelAdmin):
    """Refuses what Django's admin fails on."""

    # Those of `list_filter`: Django would take any of any column, regular expressions among them.
    allowed_lookups: ClassVar[tuple[str, ...]] = ()

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        # PostgreSQL holds no NUL.
        return lookup in self.allowed_lookups and "\0" not in value

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any], *_: Any) -> HttpResponse | None:
        """Refuses ids that are none, and a deletion whose confirmation would list a million rows."""
        if not all(map(self.is_valid_id, request.POST.getlist(ACTION_CHECKBOX_NAME))):
            words = "Nothing was changed: what was selected does not exist."
        elif is_delete_all(request) and queryset[MAX_COUNT:].exists():
            words = f"Nothing was deleted: select {MAX_COUNT:,} at most."
        else:
            return super().response_action(request, queryset)
        self.message_user(request, words, messages.ERROR)
        return HttpResponseRedirect(request.get_full_path())

    def is_valid_id(self, text: str) -> bool:
        try:
            self.opts.pk.clean(text, None)
        except ValidationError:
            return False
        return True


class BaseAdmin(ValidatingAdmin):
    """Pages of what there may be a million of, and of secrets."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    view_on_site = False

    def show_once(self, request: HttpRequest, obj: Any, secrets: dict[str, str], note: str = "") -> HttpResponse:
        """The page with a new secret: never kept, neither here nor, by the admin's no-store, by a browser."""
        context = {
            **self.admin_site.each_context(request),
            "title": str(obj),
            "opts": self.opts,
            "object": obj,
            "secrets": secrets,
            "note": note,
        }
        return TemplateResponse(request, "admin/oauth/told_once.html", context)

    def record_action(self, request: HttpRequest, rows: Iterable[Any], words: str) -> None:
        """In the history of each."""
        user: Any = request.user
        LogEntry.objects.log_actions(user.pk, rows, CHANGE, change_message=words)


class ReadOnlyAdmin(BaseAdmin):
    """What is written by the service alone, and read here."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """For the actions alone."""
        return obj is None and super().has_change_permission(request)


class OwnedAdmin(BaseAdmin):
    """Shows people what is their own, and superusers all."""

    # The path from a row to whom it belongs.
    owner_path = ""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        return rows if request.user.is_superuser else rows.filter(**{self.owner_path: request.user})

    def formfield_for_foreignkey(
        self, db_field: "ForeignKey[Any, Any]", request: HttpRequest, **options: Any
    ) -> forms.ModelChoiceField | None:
        if db_field.name == self.owner_path:
            options["queryset"] = User.objects.filter(is_active=True)
        return super().formfield_for_foreignkey(db_field, request, **options)


def is_delete_all(request: HttpRequest) -> bool:
    across = [value for value in request.POST.getlist("select_across") if value not in ("", "0")]
    return "delete_selected" in request.POST.getlist("action") and bool(across)

"""The list and the form of books. All changes go through `books.writing`. No page counts or sorts all books."""

from collections.abc import Callable
from copy import copy
from typing import Any, cast
from urllib.parse import parse_qsl

from django.contrib import admin, messages
from django.contrib.admin.options import IS_POPUP_VAR, TO_FIELD_VAR
from django.core.exceptions import PermissionDenied
from django.db.models import Field as Column
from django.db.models import QuerySet
from django.forms import Field
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import URLPattern, reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from books.admin.book.catalogue import find_catalogue_address
from books.admin.book.deleted_books import RESTORE, restore_lost_book, show_lost_form
from books.admin.book.forms import BookForm
from books.admin.book.history import UNKNOWN_STATE, find_known_book, list_last_changes, show_history
from books.admin.book.warnings import find_warnings
from books.admin.descriptions import isolate
from books.admin.list.changelist import BookList
from books.admin.list.filters import describe_unknown, list_unknown_names
from books.admin.list.settings import ROWS_OF_A_PAGE, list_views, redirect_to_list
from books.admin.operations.bulk_edit import bulk_edit_selected
from books.admin.operations.list_actions import DELETE_ACTION, MARK_AVAILABLE, MARK_LENT, run_list_action
from books.admin.urls import URLS
from books.admin.views import find_librarian, focus_first, report_done
from books.book.fields import FIELDS
from books.files.formats.registry import STREAMED_FORMATS
from books.history.states import UnknownVersion, find_state
from books.models import YEAR_RANGE, Book
from books.permissions import ADD_BOOK, BULK_EDIT, VIEW_HISTORY
from books.writing import changes
from library_site.admin.model_admins import ValidatingAdmin
from library_site.db.integers import parse_integer


@admin.register(Book)
class BookAdmin(ValidatingAdmin):
    form = BookForm
    # Not where Django looks for those of every admin of books.
    change_form_template = "admin/books/book_admin/change_form.html"
    change_list_template = "admin/books/book_admin/change_list.html"
    delete_confirmation_template = "admin/books/book_admin/delete_confirmation.html"
    # Django shows the search box only if this is set. `BookList` does the search.
    search_fields = ("title",)
    search_help_text = _(
        "An ISBN in any writing, the ID of a book like #17, or words: each somewhere in title, author or genre, or"
        " at the start of the ISBN."
    )
    # The isbn comes first because a scanner types it.
    fields = ("isbn", *(name for name in FIELDS if name != "isbn"))
    # Of what a field with autocomplete suggests; the list has its own.
    ordering = ("pk",)
    actions = ("edit_books", "mark_lent", "mark_available", "delete_books")
    danger_actions = ("delete_books",)

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[BookList]:
        return BookList

    def get_urls(self) -> list[URLPattern]:
        return [*URLS, *super().get_urls()]

    @admin.action(description=_("Edit"), permissions=["bulk_edit"])
    def edit_books(self, request: HttpRequest, queryset: QuerySet[Book]) -> HttpResponse | None:
        return HttpResponseRedirect(bulk_edit_selected(request))

    @admin.action(description=_("Mark as available"), permissions=["change"])
    def mark_available(self, request: HttpRequest, queryset: QuerySet[Book]) -> HttpResponse | None:
        return run_list_action(request, queryset, MARK_AVAILABLE)

    @admin.action(description=_("Mark as lent"), permissions=["change"])
    def mark_lent(self, request: HttpRequest, queryset: QuerySet[Book]) -> HttpResponse | None:
        return run_list_action(request, queryset, MARK_LENT)

    @admin.action(description=_("Delete"), permissions=["delete"])
    def delete_books(self, request: HttpRequest, queryset: QuerySet[Book]) -> HttpResponse | None:
        return run_list_action(request, queryset, DELETE_ACTION)

    def has_bulk_edit_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(BULK_EDIT)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions = super().get_actions(request)
        # Django's own action neither shows the ISBNs nor has a limit.
        actions.pop("delete_selected", None)
        return actions

    def formfield_for_dbfield(self, db_field: "Column[Any, Any]", request: HttpRequest, **options: Any) -> Field | None:
        """Adds hidden initial values to the form, so that only fields that the librarian edits count as changed.

        Otherwise saving would overwrite a change that another user made in the meantime.
        """
        if db_field.name == "year":
            sentence = _("A year is a number such as 1984.")
            options["error_messages"] = {"min_value": sentence, "max_value": sentence}
            options["min_value"], options["max_value"] = YEAR_RANGE
        return super().formfield_for_dbfield(db_field, request, show_hidden_initial=True, **options)

    def get_fields(self, request: HttpRequest, obj: Book | None = None) -> list[Any]:
        """The page of a book has a button to lend it. Only the form of an earlier state also has the field."""
        has_state = "state" in request.GET or "initial-available" in request.POST
        return [name for name in self.fields if obj is None or has_state or name != "available"]

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Book | None:
        """Locks a book for a change, so that no one changes it between the check of the form and the write."""
        if request.method == "POST" and self.is_valid_id(object_id):
            changes.lock_books([int(object_id)])
        book: Book | None = super().get_object(request, object_id, from_field)
        return book

    def get_form(self, request: HttpRequest, obj: Book | None = None, change: bool = False, **options: Any) -> Any:
        form: Any = super().get_form(request, obj, change, **options)
        form.user = request.user
        form.state = self.find_requested_state(request, obj) if obj and request.method == "GET" else None
        return form

    def find_requested_state(self, request: HttpRequest, book: Book) -> dict[str, Any] | None:
        version = parse_integer(request.GET.get("state", ""))
        if version is None or not self.has_change_permission(request, book) or not request.user.has_perm(VIEW_HISTORY):
            return None
        try:
            return find_state(book.pk, version)
        except UnknownVersion:
            self.message_user(request, gettext(UNKNOWN_STATE), messages.ERROR)
            return None

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *arguments: Any, **options: Any
    ) -> HttpResponse:
        """Hides the message "correct the errors" if the form has only warnings, and sets the focus."""
        form = context["adminform"].form
        context["catalogue_address"] = find_catalogue_address() if options.get("add") else ""
        if options.get("change"):
            context["last_changes"] = list_last_changes(request, options["obj"])
            context |= self.describe_origin(request, options["obj"])
            if not form.is_bound and self.has_change_permission(request, options["obj"]):
                values = ("isbn", "year")
                form.warnings = find_warnings(form.initial, values, options["obj"].pk, timezone.now().date())
        context.setdefault("show_save_and_add_another", True)
        # The link to delete the book stands beside the form.
        context["show_delete"] = False
        if form.has_only_questions():
            context["errors"] = []
        focus_first(form)
        return super().render_change_form(request, context, *arguments, **options)

    def describe_origin(self, request: HttpRequest, book: Book) -> dict[str, Any]:
        """Returns what the page shows of the list that it was opened from: the books before and after this one."""
        if not self.get_preserved_filters(request):
            return {}
        list_request = copy(request)
        list_request.GET = QueryDict(request.GET["_changelist_filters"])
        book_list = cast("BookList", self.get_changelist_instance(list_request))
        previous_book, next_book = book_list.find_neighbours(book.pk)
        return {
            "previous_book": previous_book,
            "next_book": next_book,
            "show_save_and_continue": True,
            "show_save_and_add_another": False,
        }

    def response_change(self, request: HttpRequest, obj: Book) -> HttpResponse:
        """Leads to the list that the page was opened from, or to the book after this one in it, or stays.

        Django's message has the title that was typed, which need not be what was saved.
        """
        if IS_POPUP_VAR in request.POST:
            return super().response_change(request, obj)
        messages.success(request, gettext("Saved."))
        if "_addanother" in request.POST:
            return HttpResponseRedirect(reverse("admin:books_book_add"))
        origin = self.get_preserved_filters(request)
        if origin and not request.POST.keys() & {"_continue", "_next"}:
            address = reverse("admin:books_book_changelist")
            query = QueryDict(request.GET["_changelist_filters"]).urlencode()
            return HttpResponseRedirect(f"{address}?{query}#book-{obj.pk}")
        address = reverse("admin:books_book_change", args=[request.POST.get("_next", obj.pk)])
        return HttpResponseRedirect(f"{address}?{origin}" if origin else address)

    def response_post_save_add(self, request: HttpRequest, obj: Book) -> HttpResponseRedirect:
        return HttpResponseRedirect(reverse("admin:books_book_change", args=[obj.pk]))

    def save_model(self, request: HttpRequest, obj: Book, form: BookForm, change: bool) -> None:
        """Runs in the transaction that Django's view opens, like `delete_model`."""
        values = {name: getattr(obj, name) for name in FIELDS}
        if change:
            changes.change_book(obj.pk, values, None, find_librarian(request), timezone.now())
        else:
            obj.pk = changes.create_book(values, find_librarian(request), now=timezone.now()).id

    def delete_model(self, request: HttpRequest, obj: Book) -> None:
        changes.delete_book(obj.pk, None, find_librarian(request), timezone.now())

    def render_delete_form(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        return super().render_delete_form(request, {**context, "books": [context["object"]]})

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: int) -> HttpResponse:
        """Replaces Django's message by one that undoes."""
        if IS_POPUP_VAR in request.POST:
            return super().response_delete(request, obj_display, obj_id)
        may_restore = request.user.has_perm(ADD_BOOK)
        address = reverse("admin:books_book_restore", args=[obj_id]) if may_restore else ""
        report_done(request, gettext("The book “%(title)s” is deleted.") % {"title": isolate(obj_display)}, address)
        return redirect_to_list(dict(parse_qsl(self.get_preserved_filters(request))).get("_changelist_filters", ""))

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        if not request.user.has_perm(VIEW_HISTORY):
            raise PermissionDenied
        return show_history(request, object_id)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if unknown_names := list_unknown_names(request.GET):
            # An unknown parameter must not look like a filter: an action would change more books than expected.
            self.message_user(request, describe_unknown(unknown_names), messages.ERROR)
            kept = {name: request.GET.get(name) for name in (IS_POPUP_VAR, TO_FIELD_VAR)}
            return redirect_to_list(request.GET, **kept)
        views = list_views(request)
        if not request.GET and request.method == "GET" and (default := next((v for v in views if v.is_default), None)):
            return redirect_to_list(default.view.query, view=default.view.pk)
        context = {
            "saved_views": views,
            "row_choices": ROWS_OF_A_PAGE,
            "export_formats": STREAMED_FORMATS.values(),
            **(extra_context or {}),
        }
        return self.report_conflict(request, super().changelist_view, context)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, *arguments: Any, **options: Any
    ) -> HttpResponse:
        """Restores a deleted book first if the user asks for it on the page of a lost form."""
        if object_id and request.method == "POST" and RESTORE in request.POST:
            restore_lost_book(request, object_id)
        return self.report_conflict(request, super().changeform_view, object_id, *arguments, **options)

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> HttpResponse:
        """Shows the user's input if the book was deleted while it was being edited, else its history."""
        page = show_lost_form(request, object_id) if request.method == "POST" else None
        if not page and request.user.has_perm(VIEW_HISTORY) and find_known_book(object_id):
            if request.method == "POST":
                messages.info(request, gettext("The book is deleted already."))
            return HttpResponseRedirect(reverse("admin:books_book_history", args=[object_id]))
        return page or super()._get_obj_does_not_exist_redirect(request, opts, object_id)

    def delete_view(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        return self.report_conflict(request, super().delete_view, *arguments, **options)

    def report_conflict(
        self, request: HttpRequest, view: Callable[..., HttpResponse], *arguments: Any, **options: Any
    ) -> HttpResponse:
        """Returns the view's response, or redirects to the same page if another request changed the book first."""
        try:
            return view(request, *arguments, **options)
        except (changes.BookNotFound, changes.IsbnInUse, changes.ConcurrentChange):
            message = gettext("Nothing was changed: someone else changed, deleted or added such a book first.")
        except changes.BookProtected as error:
            message = gettext(error.default_detail)
        self.message_user(request, message, messages.ERROR)
        return HttpResponseRedirect(request.get_full_path())

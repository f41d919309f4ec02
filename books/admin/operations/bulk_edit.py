"""The bulk edit: the user chooses an edit for the books of a list, sees a preview, and starts the operation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from books.admin.descriptions import AVAILABLE, LABELS, STATES, compare_fields, format_sentence, operation_address
from books.admin.list.filters import (
    LIST_FORM,
    ListFilterForm,
    change_query,
    describe_selection,
    list_unknown_names,
    resolve_filters,
)
from books.admin.list.settings import redirect_to_list
from books.admin.operations.descriptions import describe_edit
from books.admin.views import find_librarian, focus_first, render_page
from books.book.fields import FIELDS, MAX_LENGTHS
from books.book.texts import clean_white_space
from books.models import YEAR_RANGE, Actor, Book
from books.operations.edits import Edit
from books.operations.lifecycle import store_operation
from books.operations.previews import Preview
from books.operations.selection_tasks import DELETE, DeleteTask, EditTask, OperationRequest, SelectionTask, StoredFilter
from books.operations.tasks import MAX_ANNOUNCED_ALWAYS
from books.permissions import OPERATION_KINDS
from library_site.admin.paginator import count_rows

SET, REPLACE, DELETE_CHOICE = "set", "replace", "delete"
# An isbn belongs to one book, so a bulk edit cannot set it.
SET_FIELDS = [name for name in FIELDS if name not in ("isbn", "available")]
REPLACED_FIELDS = sorted(MAX_LENGTHS, key=lambda name: name == "isbn")
SIGNING_SALT = "books.bulk_edit"
EDIT_BUTTON = ngettext_lazy("Edit %(count)s book", "Edit %(count)s books", "number")
DELETE_BUTTON = ngettext_lazy("Delete %(count)s book", "Delete %(count)s books", "number")


class TextField(forms.CharField):
    """A text that must not be blank. Its white space is cleaned."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, strip=False, **options)

    def clean(self, value: Any) -> str:
        given: str = super().clean(value)
        text = clean_white_space(given)
        if given and not text:
            raise forms.ValidationError(_("Write something besides blanks."), "blank")
        return text


def build_form_field(name: str) -> forms.Field:
    """Returns the form field for a new value. An empty input leaves the field unchanged."""
    if name in MAX_LENGTHS:
        return TextField(label=LABELS[name], max_length=MAX_LENGTHS[name])
    return forms.IntegerField(label=LABELS[name], required=False, min_value=YEAR_RANGE[0], max_value=YEAR_RANGE[1])


class BulkEditForm(forms.Form):
    """The choices of a bulk edit. The inputs of other choices are ignored."""

    change = forms.ChoiceField(
        label=_("What to do"),
        choices=[(SET, _("Set values")), (REPLACE, _("Find and replace")), (DELETE_CHOICE, _("Delete"))],
        initial=SET,
        widget=forms.RadioSelect,
    )
    availability = forms.ChoiceField(
        label=_("Availability"),
        required=False,
        choices=[("", _("as it is")), *STATES.items()],
    )
    member = forms.ChoiceField(
        label=_("In the field"), required=False, choices=[(name, LABELS[name]) for name in REPLACED_FIELDS]
    )
    find = forms.CharField(label=_("Find"), required=False, strip=False, max_length=MAX_LENGTHS["title"])
    replacement = forms.CharField(label=_("Replace with"), required=False, strip=False, max_length=MAX_LENGTHS["title"])

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fields |= {name: build_form_field(name) for name in SET_FIELDS}
        self.order_fields(["change", *SET_FIELDS])

    @property
    def value_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in (*SET_FIELDS, "availability")]

    @property
    def replacement_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in ("member", "find", "replacement")]

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = self.cleaned_data
        if values.get("change") == SET and not self.errors and not self.list_values():
            raise forms.ValidationError(_("Write at least one new value."), "nothing")
        if values.get("change") == REPLACE and not self.errors and not (values["find"] and values["member"]):
            self.add_error("find", forms.ValidationError(_("Write the text to be replaced."), "required"))
        return values

    def list_values(self) -> dict[str, Any]:
        values = {name: self.cleaned_data[name] for name in SET_FIELDS if self.cleaned_data[name] not in ("", None)}
        if availability := self.cleaned_data["availability"]:
            values["available"] = availability == AVAILABLE
        return values

    @property
    def kind(self) -> type[SelectionTask]:
        return DeleteTask if self.cleaned_data["change"] == DELETE_CHOICE else EditTask

    def build_parameters(self) -> dict[str, Any]:
        values = self.cleaned_data
        if values["change"] == DELETE_CHOICE:
            return {}
        if values["change"] == REPLACE:
            return Edit({}, values["member"], values["find"], values["replacement"]).to_parameters()
        return Edit(self.list_values()).to_parameters()


@dataclass(frozen=True)
class Question:
    """The choices of a preview. The confirmation sends them back signed, because the day or the time zone can change.

    `token` identifies the operation: a confirmation that is sent twice starts it once.
    """

    change: OperationRequest
    matched: int
    token: str

    def sign(self) -> str:
        kind, selection, parameters = self.change
        content = (kind.name, selection._asdict(), parameters, self.matched, self.token)
        return signing.dumps(content, salt=SIGNING_SALT, compress=True)


def read_question(text: str) -> Question | None:
    try:
        name, selection, parameters, matched, token = signing.loads(text, salt=SIGNING_SALT)
    except signing.BadSignature:
        return None
    kind = DeleteTask if name == DELETE else EditTask
    return Question(OperationRequest(kind, StoredFilter(**selection), parameters), matched, token)


def show_bulk_edit(request: HttpRequest) -> HttpResponse:
    """Shows the form, then the preview, then starts the operation for the books of a list with the same query."""
    if question := read_question(request.POST.get("question", "")):
        return begin_or_ask_again(request, question)
    selection = read_selected_books(request.GET)
    if selection is None:
        messages.error(request, gettext("Nothing was changed: the library cannot read a filter of the list."))
        return redirect_to_list(request.GET)
    form = BulkEditForm(request.POST if request.method == "POST" else None, label_suffix="")
    if form.is_valid():
        change = OperationRequest(form.kind, selection, form.build_parameters())
        require_permissions(request, change)
        return ask(request, change)
    focus_first(form)
    return render_page(
        request,
        "operations/bulk_edit",
        gettext("Edit many books"),
        form=form,
        # The preview has the exact number.
        matched=count_rows(selection.list_books()),
        filter=describe_selection(selection),
        list_address=selected_list_address(request.GET),
    )


def require_permissions(request: HttpRequest, change: OperationRequest) -> None:
    if not request.user.has_perms(OPERATION_KINDS[change.kind.name]):
        raise PermissionDenied


def begin_or_ask_again(request: HttpRequest, question: Question) -> HttpResponse:
    change, count = question.change, question.change.selection.list_books().count()
    require_permissions(request, change)
    if question.matched != count:
        return ask(request, change, gettext("Meanwhile the number of books has changed."))
    if count > MAX_ANNOUNCED_ALWAYS and read_number(request.POST.get("typed", "")) != str(count):
        return ask(request, change, gettext("Type the number of the books to go on."))
    actor = find_librarian(request, Actor.Channel.OPERATION)
    parameters = change.build_parameters(events="silent" not in request.POST)
    # The same token from another user is not a repetition.
    token = f"{request.user.pk} {question.token}"
    operation = store_operation(change.kind.name, parameters, actor, timezone.now(), token)
    return HttpResponseRedirect(operation_address(operation.pk))


def ask(request: HttpRequest, change: OperationRequest, error: str = "") -> HttpResponse:
    preview = change.preview()
    return render_preview(
        request,
        DELETE_BUTTON if change.kind is DeleteTask else EDIT_BUTTON,
        change.parameters,
        preview,
        error=error,
        is_large=preview.matched > MAX_ANNOUNCED_ALWAYS,
        filter=describe_selection(change.selection),
        inputs=[("question", Question(change, preview.matched, str(uuid4())).sign())],
        address=bulk_edit_address(request.GET),
        list_address=selected_list_address(request.GET),
    )


def render_preview(
    request: HttpRequest, words: Any, parameters: Mapping[str, Any], preview: Preview, **context: Any
) -> HttpResponse:
    """Renders the preview. The form's `inputs` confirm. `words` are lazily translated, for the number of changes."""
    button = format_sentence(words, preview.would_change)
    return render_page(
        request,
        "operations/preview",
        f"{button}?",
        button=button,
        preview=preview,
        books=[Book(pk=sample.id, **sample.before) for sample in preview.samples if sample.after is None],
        lines=list(describe_edit(parameters)),
        samples=[(sample, compare_fields(sample.before, sample.after)) for sample in preview.samples],
        unchanged=preview.matched - preview.would_change - preview.conflicts - preview.invalid,
        **context,
    )


def read_selected_books(query: QueryDict) -> StoredFilter | None:
    """Returns the books that the list with this query contains now.

    The list ignores an invalid filter. A bulk edit must not, because it would change too many books: it gets None.
    """
    if not ListFilterForm(query).is_valid() or list_unknown_names(query):
        return None
    return StoredFilter(LIST_FORM, resolve_filters(query, timezone.now()))


def read_number(text: str) -> str:
    return "".join(character for character in text if character not in " ,.’'\u00a0\u202f")


def bulk_edit_selected(request: HttpRequest) -> str:
    if is_across(request):
        return bulk_edit_address(request.GET)
    return reverse("admin:bulk_edit", query={"ids": ",".join(request.POST.getlist(ACTION_CHECKBOX_NAME))})


def is_across(request: HttpRequest) -> bool:
    """Whether the user selected all books of the list, not only the checked ones."""
    return request.POST.get("select_across", "0") not in ("", "0")


def bulk_edit_address(query: QueryDict) -> str:
    return f"{reverse('admin:bulk_edit')}?{change_query(query)}"


def selected_list_address(query: QueryDict) -> str:
    return f"{reverse('admin:books_book_changelist')}?{change_query(query)}"

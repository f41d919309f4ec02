"""The form of a book. It writes only the fields that the librarian edited.

It warns before it overwrites another user's change, and before it saves a value that is probably wrong.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from django import forms
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _

from books.admin.book.warnings import BookWarning, find_warnings
from books.admin.descriptions import ValueLine, compare_fields, format_value
from books.book.fields import MAX_LENGTHS
from books.book.isbn import hyphenate_isbn, normalize_isbn
from books.book.texts import clean_white_space
from books.history.change_pages import NAME_COLUMNS
from books.models import Actor, Book, Change
from books.permissions import VIEW_HISTORY
from books.search.scans import read_scan
from library_site.admin.moments import format_age

# The input with the tokens of the warnings that the page has shown, and the checkbox that accepts a warning.
SHOWN_WARNINGS = "shown_warnings"
ACCEPTED_WARNING = "accepted_warning"


class BookForm(forms.ModelForm):
    """The form of the page of a book.

    Its hidden initial values are the values that the page showed. If the database has another value by now, and it is
    not the value that the librarian entered, another user changed it. Then the form is rejected once, and the next page
    shows the new value as the initial one.
    """

    # An earlier state of the book. A new form shows it instead of the current state.
    state: Mapping[str, Any] | None = None
    # Who edits.
    user: Any
    # The fields that the librarian edited, and that were changed elsewhere after the page was opened.
    conflicts: Sequence[str] = ()
    warnings: Sequence[BookWarning] = ()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if self.state and not self.is_bound:
            self.data, self.is_bound = self.build_state_data(self.state), True
        # Validation writes the values into the instance, but the page must show the book as it is saved.
        self.instance = copy(self.instance)

    def build_state_data(self, state: Mapping[str, Any]) -> dict[str, str]:
        """Returns the data that a browser would send if the librarian entered the values of the state."""
        initial_values = {self.add_initial_prefix(name): str(self.initial[name]) for name in state}
        # Browsers do not send an empty checkbox.
        return initial_values | {name: str(value) for name, value in state.items() if value is not False}

    def list_state_lines(self) -> list[ValueLine]:
        """Lists the values that saving would change, each with the current value and the value of the state."""
        return [line for line in compare_fields(self.initial, self.state) if line.differs]

    def clean_isbn(self) -> str:
        """Adds hyphens to the valid ISBN of a new book. Leaves that of an existing book as it was written."""
        isbn = self.cleaned_data["isbn"] if self.instance.pk else write_isbn(self.cleaned_data["isbn"])
        holder = Book.objects.filter(isbn=isbn).exclude(pk=self.instance.pk).values_list("pk", "title").first()
        if holder:
            raise forms.ValidationError(format_isbn_in_use(*holder), code="unique")
        return isbn

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        values |= {name: clean_white_space(values[name]) for name in values.keys() & MAX_LENGTHS}
        self.conflicts = self.list_conflicting_names() if self.instance.pk else []
        for name in self.conflicts:
            self.add_error(name, forms.ValidationError(self.describe_conflict(name), code="conflict"))
            self.replace_initial_value(name)
        self.warnings = self.list_warnings()
        if not self.errors and not self.state:
            self.ask_about_warnings()
        return values

    def list_warnings(self) -> list[BookWarning]:
        edited = self.list_edited_names() if self.instance.pk else self.cleaned_data
        return find_warnings(self.cleaned_data, edited, self.instance.pk, timezone.now().date())

    def ask_about_warnings(self) -> None:
        """Rejects the form for each warning that was not shown yet, or that must be accepted and was not."""
        shown_tokens = str(self.data.get(SHOWN_WARNINGS, "")).split()
        for warning in self.warnings:
            if not self.is_accepted(warning) and (warning.needs_yes or warning.token not in shown_tokens):
                self.add_error(warning.field, forms.ValidationError(build_question(warning), code="warning"))

    def is_accepted(self, warning: BookWarning) -> bool:
        return bool(self.data.get(ACCEPTED_WARNING) == warning.token)

    def list_shown_tokens(self) -> list[str]:
        """Returns the tokens of the warnings that only have to be shown."""
        return [warning.token for warning in self.warnings if not warning.needs_yes]

    def list_accepted_tokens(self) -> list[str]:
        """Returns the token of the accepted warning. The next page keeps it while it shows another warning."""
        return [warning.token for warning in self.warnings if self.is_accepted(warning)]

    def has_only_questions(self) -> bool:
        """Whether the form has only warnings and no errors: then the user may simply save again."""
        problems = [problem for problems in self.errors.as_data().values() for problem in problems]
        return bool(problems) and all(problem.code in ("conflict", "warning") for problem in problems)

    def save(self, commit: bool = True) -> Book:
        """Sets only what the librarian edited: what the page showed of the other fields may be out of date."""
        if self.instance.pk:
            for name in self.initial.keys() - self.list_edited_names():
                setattr(self.instance, name, self.initial[name])
        book: Book = super().save(commit)
        return book

    def list_edited_names(self) -> list[str]:
        """Returns the fields that the librarian edited. A line break that the browser dropped is not an edit."""
        return [
            name
            for name in self.changed_data
            if name in self.cleaned_data and self.cleaned_data[name] != self.read_initial_value(name)
        ]

    def list_conflicting_names(self) -> list[str]:
        return [
            name
            for name in self.list_edited_names()
            if name in self.initial
            and remove_line_breaks(self.initial[name]) not in (self.read_initial_value(name), self.cleaned_data[name])
        ]

    def read_initial_value(self, name: str) -> Any:
        """Returns the value that the page showed, without the line breaks that a one-line input drops."""
        field = self.fields[name]
        value = field.hidden_widget().value_from_datadict(self.data, self.files, self.add_initial_prefix(name))
        try:
            return remove_line_breaks(field.to_python(value))
        except forms.ValidationError:
            return None

    def describe_conflict(self, name: str) -> str:
        """Returns the other value, who wrote it and when, and the librarian's own, as HTML."""
        changes = Change.objects.select_related("actor").filter(book_id=self.instance.pk, after__has_key=name)
        change = changes.order_by("-version").first()
        names = [self.name_actor(change.actor)] if change else []
        age = format_age(change.at if change else self.instance.updated_at, timezone.now())
        return format_html(
            _("It says “{}” by now ({}). You wrote “{}”."),
            format_value(self.initial[name]),
            format_html_join(", ", "{}", [(text,) for text in (*names, age) if text]),
            format_value(self.cleaned_data[name]),
        )

    def name_actor(self, actor: Actor) -> str:
        """Returns nothing if the librarian may not see who changed a book."""
        if actor.user_id == self.user.pk:
            return _("you, elsewhere")
        names = (getattr(actor, column) for column in NAME_COLUMNS)
        name = next(filter(None, names), _(actor.get_channel_display()))
        return name if self.user.has_perm(VIEW_HISTORY) else ""

    def replace_initial_value(self, name: str) -> None:
        self.data = {**dict(self.data.items()), self.add_initial_prefix(name): str(self.initial[name])}


def build_question(warning: BookWarning) -> str:
    """Returns the HTML of a warning, with a checkbox if the user must accept it."""
    if not warning.needs_yes:
        return format_html(_("{} Save again to keep it."), warning.message)
    return format_html(
        '{} <label class="yes"><input type="checkbox" name="{}" value="{}"> {}</label>',
        warning.message,
        ACCEPTED_WARNING,
        warning.token,
        _("Yes, save another book with this ISBN"),
    )


def write_isbn(text: str) -> str:
    """Adds hyphens to a valid ISBN and removes what a scanner added. Returns any other text unchanged."""
    if normalize_isbn(text):
        return hyphenate_isbn(text)
    scan = read_scan(text)
    return hyphenate_isbn(scan.isbn13) if scan.isbn13 else text


def format_isbn_in_use(pk: int, title: str) -> str:
    link = format_html('<a href="{}">{}</a>', reverse("admin:books_book_change", args=[pk]), title)
    return format_html(_("{} has this ISBN."), link)


def remove_line_breaks(value: Any) -> Any:
    return "".join(value.splitlines()).strip() if isinstance(value, str) else value

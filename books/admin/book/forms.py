"""The form of a book: it writes what the librarian edited, and asks before it replaces what someone else saved.

It asks, too, before it saves what is probably wrong.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

from django import forms
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _

from books.admin.book.warnings import BookWarning, find_warnings
from books.admin.descriptions import ValueLine, compare_members, format_value
from books.isbn import hyphenate_isbn, normalize_isbn
from books.models import Book
from books.search.scans import read_scan

# The name of the input with the tokens of the warnings that the page has shown, and of the box with the token of the
# one to which the librarian says yes.
SHOWN_WARNINGS = "shown_warnings"
ACCEPTED_WARNING = "accepted_warning"


class EditConflict(NamedTuple):
    """A member that the librarian edited and that someone else changed after the page was opened."""

    label: str
    initial: str
    saved: str
    edited: str


class BookForm(forms.ModelForm):
    """The form of the page of a book.

    Its hidden initial values are what the page showed. A value that is in the database by now, and is neither that nor
    the librarian's, is someone else's: the form is refused once, and its next page has that value as the initial one.
    """

    # An earlier state, which a new form shows instead of the book's own.
    state: Mapping[str, Any] | None = None
    conflicts: Sequence[EditConflict] = ()
    warnings: Sequence[BookWarning] = ()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if self.state and not self.is_bound:
            self.data, self.is_bound = self.build_state_data(self.state), True
            # Validation writes the values into the instance, which the page shows as the book.
            self.instance = copy(self.instance)

    def build_state_data(self, state: Mapping[str, Any]) -> dict[str, str]:
        """Returns what a browser would send if the librarian entered the state."""
        initial_values = {self.add_initial_prefix(name): str(self.initial[name]) for name in state}
        # An empty checkbox is not sent.
        return initial_values | {name: str(value) for name, value in state.items() if value is not False}

    def list_state_lines(self) -> list[ValueLine]:
        """The values that saving the state would change: the book's own and those of the state."""
        return [line for line in compare_members(self.initial, self.state) if line.differs]

    def clean_isbn(self) -> str:
        """A valid ISBN of a new book gets its hyphens. Of another book an earlier writing may be restored."""
        isbn = self.cleaned_data["isbn"] if self.instance.pk else write_isbn(self.cleaned_data["isbn"])
        holder = Book.objects.filter(isbn=isbn).exclude(pk=self.instance.pk).values_list("pk", "title").first()
        if holder:
            raise forms.ValidationError(format_isbn_in_use(*holder), code="unique")
        return isbn

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        names = self.list_conflicting_names() if self.instance.pk else []
        self.conflicts = [self.build_conflict(name) for name in names]
        for name in names:
            message = _("Someone else changed this too. Save again to write your value.")
            self.add_error(name, forms.ValidationError(message, code="conflict"))
            self.replace_initial_value(name)
        self.warnings = self.list_warnings()
        if not self.errors and not self.state:
            self.ask_about_warnings()
        return values

    def list_warnings(self) -> list[BookWarning]:
        edited = self.list_edited_names() if self.instance.pk else self.cleaned_data
        return find_warnings(self.cleaned_data, edited, self.instance.pk, timezone.now().date())

    def ask_about_warnings(self) -> None:
        """Refuses the form for each warning that its page has not shown yet, or that nobody has said yes to."""
        shown_tokens = str(self.data.get(SHOWN_WARNINGS, "")).split()
        for warning in self.warnings:
            if not self.is_accepted(warning) and (warning.needs_yes or warning.token not in shown_tokens):
                self.add_error(warning.member, forms.ValidationError(build_question(warning), code="warning"))

    def is_accepted(self, warning: BookWarning) -> bool:
        return bool(self.data.get(ACCEPTED_WARNING) == warning.token)

    def list_shown_tokens(self) -> list[str]:
        """Returns the tokens of the warnings that need no more than to be shown."""
        return [warning.token for warning in self.warnings if not warning.needs_yes]

    def list_accepted_tokens(self) -> list[str]:
        """Returns the token to which the librarian has said yes, for the next page, which asks about something else."""
        return [warning.token for warning in self.warnings if self.is_accepted(warning)]

    def has_only_questions(self) -> bool:
        """Whether nothing has to be corrected: saving again is enough."""
        problems = [problem for problems in self.errors.as_data().values() for problem in problems]
        return bool(problems) and all(problem.code in ("conflict", "warning") for problem in problems)

    def read_edits(self) -> dict[str, Any]:
        """Returns the values of a valid form that the librarian edited."""
        return {name: self.cleaned_data[name] for name in self.list_edited_names()}

    def list_edited_names(self) -> list[str]:
        """The members that the librarian edited, not only the browser, which drops line breaks in one-line inputs."""
        return [
            name
            for name in self.changed_data
            if name in self.cleaned_data and self.cleaned_data[name] != self.read_initial_value(name)
        ]

    def list_conflicting_names(self) -> list[str]:
        return [
            name
            for name in self.list_edited_names()
            if remove_line_breaks(self.initial[name]) not in (self.read_initial_value(name), self.cleaned_data[name])
        ]

    def read_initial_value(self, name: str) -> Any:
        """Returns the value that the page showed, as a one-line input shows it."""
        field = self.fields[name]
        value = field.hidden_widget().value_from_datadict(self.data, self.files, self.add_initial_prefix(name))
        try:
            return remove_line_breaks(field.to_python(value))
        except forms.ValidationError:
            return None

    def build_conflict(self, name: str) -> EditConflict:
        values = (self.read_initial_value(name), self.initial[name], self.cleaned_data[name])
        return EditConflict(str(self.fields[name].label), *map(format_value, values))

    def replace_initial_value(self, name: str) -> None:
        self.data = {**dict(self.data.items()), self.add_initial_prefix(name): str(self.initial[name])}


def build_question(warning: BookWarning) -> str:
    """Returns HTML that asks about a warning, with a box to say yes where that is needed."""
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
    """Returns a valid ISBN with its hyphens, without what a scanner added, and any other text as it is."""
    if normalize_isbn(text):
        return hyphenate_isbn(text)
    scan = read_scan(text)
    return hyphenate_isbn(scan.isbn13) if scan.isbn13 else text


def format_isbn_in_use(pk: int, title: str) -> str:
    """Returns HTML that links to the book that has the ISBN."""
    link = format_html('<a href="{}">{}</a>', reverse("admin:books_book_change", args=[pk]), title)
    return format_html(_("{} has this ISBN."), link)


def remove_line_breaks(value: Any) -> Any:
    return "".join(value.splitlines()).strip() if isinstance(value, str) else value

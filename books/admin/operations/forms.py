"""The form of a bulk edit: set values, replace a text, or delete books."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from books.admin.descriptions import AVAILABLE, LABELS, STATES
from books.book.fields import FIELDS, MAX_LENGTHS
from books.book.texts import clean_white_space
from books.models import YEAR_RANGE
from books.operations.edits import Edit
from books.operations.selection_tasks import DeleteTask, EditTask, SelectionTask

SET, REPLACE, DELETE_CHOICE = "set", "replace", "delete"
# An isbn belongs to one book, so a bulk edit cannot set it.
SET_FIELDS = [name for name in FIELDS if name not in ("isbn", "available")]
REPLACED_FIELDS = sorted(MAX_LENGTHS, key=lambda name: name == "isbn")


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

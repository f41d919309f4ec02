"""The form of a bulk edit: new values, a text to be replaced, or a deletion."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from books.admin.list.filters import AVAILABILITY_CHOICES
from books.models import MAX_LENGTHS, YEAR_RANGE
from books.operations.edits import Edit

SET, REPLACE, DELETE = "set", "replace", "delete"
MEMBER_CHOICES = [("title", _("Title")), ("author", _("Author")), ("genre", _("Genre")), ("isbn", _("ISBN"))]


class TextField(forms.CharField):
    """A text whose blanks count, and that is not blank."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, strip=False, **options)

    def clean(self, value: Any) -> str:
        text: str = super().clean(value)
        if text and not text.strip():
            raise forms.ValidationError(_("Write something besides blanks."), "blank")
        return text


class BulkEditForm(forms.Form):
    """What is to be done with the books of a list. The fields of other choices are ignored."""

    change = forms.ChoiceField(
        label=_("What to do"),
        choices=[(SET, _("Set values")), (REPLACE, _("Find and replace")), (DELETE, _("Delete"))],
        initial=SET,
        widget=forms.RadioSelect,
    )
    title = TextField(label=_("Title"), max_length=MAX_LENGTHS["title"])
    author = TextField(label=_("Author"), max_length=MAX_LENGTHS["author"])
    year = forms.IntegerField(label=_("Year"), required=False, min_value=YEAR_RANGE[0], max_value=YEAR_RANGE[1])
    genre = TextField(label=_("Genre"), max_length=MAX_LENGTHS["genre"])
    availability = forms.ChoiceField(
        label=_("Availability"),
        required=False,
        choices=[("", _("as it is")), *((name, label) for name, (label, _available) in AVAILABILITY_CHOICES.items())],
    )
    member = forms.ChoiceField(label=_("In the field"), required=False, choices=MEMBER_CHOICES)
    find = forms.CharField(label=_("Find"), required=False, strip=False, max_length=MAX_LENGTHS["title"])
    replacement = forms.CharField(label=_("Replace with"), required=False, strip=False, max_length=MAX_LENGTHS["title"])

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = self.cleaned_data
        if values.get("change") == SET and not self.errors and not self.list_values():
            raise forms.ValidationError(_("Write at least one new value."), "nothing")
        if values.get("change") == REPLACE and not self.errors and not (values["find"] and values["member"]):
            self.add_error("find", forms.ValidationError(_("Write the text to be replaced."), "required"))
        return values

    def list_values(self) -> dict[str, Any]:
        names = ("title", "author", "year", "genre")
        values = {name: self.cleaned_data[name] for name in names if self.cleaned_data[name] not in ("", None)}
        if availability := self.cleaned_data["availability"]:
            values["available"] = AVAILABILITY_CHOICES[availability][1]
        return values

    def build_edit(self) -> Edit | None:
        """Returns None for a deletion."""
        values = self.cleaned_data
        if values["change"] == DELETE:
            return None
        if values["change"] == REPLACE:
            return Edit({}, values["member"], values["find"], values["replacement"])
        return Edit(self.list_values())

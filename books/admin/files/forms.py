"""The forms of an import: which column contains which field, and what the import does with the records."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from books.admin.descriptions import LABELS
from books.book.fields import MAX_LENGTHS
from books.files.columns.tables import COLUMN_NAMES, FIELDS_BY_PLACE, find_dialect, guess_mapping, list_ignored
from books.files.parsing import ImportRules, MissingColumns, require_mapped_fields

FIELD_LABELS = {**LABELS, "id": _("ID")}
# Many files have a second column of ISBNs, with any name.
ALWAYS_SHOWN = ("isbn_2",)
# The fields that the form can fill in for all records.
DEFAULTS = ("genre", "year")
# The rules about records without an ISBN, by the choices of the form.
WITHOUT_ISBN_RULES = {"leave": "leave_without_isbn", "number": "use_number"}


def label_place(place: str) -> str:
    field = FIELDS_BY_PLACE[place]
    label = str(FIELD_LABELS[field])
    return label if place == field else gettext("%(member)s, if that has none") % {"member": label}


class ImportRulesForm(forms.Form):
    """The fields `column_…` are created from the columns of the file."""

    default_genre = forms.CharField(
        label=_("Genre of records that have none"), required=False, max_length=MAX_LENGTHS["genre"]
    )
    default_year = forms.IntegerField(label=_("Year of records that have none"), required=False)
    on_match = forms.ChoiceField(
        label=_("If the library has the book"),
        choices=[
            ("leave", _("Leave the book as it is")),
            ("replace", _("Replace its values by those of the record")),
            ("fill", _("Fill only what is empty")),
            ("refuse", _("Report an error")),
        ],
        widget=forms.RadioSelect,
        initial="leave",
    )
    on_none = forms.ChoiceField(
        label=_("If it does not have the book"),
        choices=[("add", _("Add the book")), ("leave", _("Leave the record out"))],
        widget=forms.RadioSelect,
        initial="add",
    )
    match_by = forms.ChoiceField(
        label=_("How to find the book"),
        choices=[
            ("isbn13", _("By its ISBN, however it is written: another spelling gives a warning")),
            ("isbn", _("By its ISBN, exactly as it is written")),
            ("id", _("By its ID, else by its ISBN")),
        ],
        widget=forms.RadioSelect,
        initial="isbn13",
    )
    without_isbn = forms.ChoiceField(
        label=_("If a record has no ISBN"),
        choices=[
            ("", _("Report an error")),
            ("leave", _("Leave the record out")),
            ("number", _("Use its number in the file as ISBN")),
        ],
        required=False,
        widget=forms.RadioSelect,
        initial="",
    )

    def __init__(self, format: str, columns: Sequence[str], mapping: Mapping[str, str], **options: Any) -> None:
        """Shows the columns of `mapping`, those guessed from their names, and at least one for each field."""
        super().__init__(**options)
        self.format = format
        self.profile, self.ignored = find_dialect(columns), list_ignored(columns, mapping)
        shown = {*COLUMN_NAMES, *ALWAYS_SHOWN, *guess_mapping(columns), *mapping}
        self.places = [place for place in FIELDS_BY_PLACE if place in shown]
        choices = [("", _("not in the file")), *((column, column) for column in columns)]
        for place in self.places:
            self.fields[f"column_{place}"] = forms.ChoiceField(
                label=label_place(place), choices=choices, required=False, initial=mapping.get(place, "")
            )
        self.order_fields([f"column_{place}" for place in self.places])

    @property
    def column_fields(self) -> list[forms.BoundField]:
        return [self[f"column_{place}"] for place in self.places]

    @property
    def default_fields(self) -> list[forms.BoundField]:
        return [self[f"default_{name}"] for name in DEFAULTS]

    @property
    def rule_fields(self) -> list[forms.BoundField]:
        return [self[name] for name, field in self.base_fields.items() if isinstance(field, forms.ChoiceField)]

    @property
    def mapping(self) -> dict[str, str]:
        """Returns the column for each place on the form, "" if the file does not contain it."""
        return {place: self.cleaned_data[f"column_{place}"] for place in self.places}

    def clean(self) -> dict[str, Any]:
        if not self.errors:
            try:
                require_mapped_fields(self.build_rules())
            except MissingColumns as error:
                labels = [f"“{self[f'default_{name}'].label}”" for name in error.names if name in DEFAULTS]
                advice = gettext("Choose its column, or fill in %(labels)s.") % {"labels": ", ".join(labels)}
                raise forms.ValidationError(f"{error} {advice if labels else ''}".strip(), "columns") from error
        return self.cleaned_data

    def build_rules(self) -> ImportRules:
        values = self.cleaned_data
        return ImportRules(
            mapping={place: column for place, column in self.mapping.items() if column},
            match_by=values["match_by"],
            on_match=values["on_match"],
            on_none=values["on_none"],
            defaults={name: str(values[f"default_{name}"]) for name in DEFAULTS if values[f"default_{name}"]},
            is_exact=self.profile.is_exact,
            format=self.format,
            **{rule: values["without_isbn"] == choice for choice, rule in WITHOUT_ISBN_RULES.items()},
        )

"""The forms of an import: where a file has the members of a book, and what becomes of its records."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from books.admin.descriptions import FORM_LABELS
from books.files.catalogues.lookup import has_catalogues
from books.files.formats.records import UnreadableFile
from books.files.mapping import COLUMN_NAMES
from books.files.parsing import ImportRules, require_mapped_members
from books.members import MAX_LENGTHS

MEMBER_LABELS = {"id": _("Number"), **FORM_LABELS}


class ImportRulesForm(forms.Form):
    """The fields `column_…` are made of the columns of the file."""

    default_genre = forms.CharField(
        label=_("Genre of records that have none"), required=False, max_length=MAX_LENGTHS["genre"]
    )
    complete_missing = forms.BooleanField(
        label=_("Complete what a record leaves empty from the catalogues of other libraries, by its ISBN"),
        required=False,
    )
    match_by = forms.ChoiceField(
        label=_("A record is about the book with the same"),
        choices=[
            ("isbn13", _("ISBN, in any writing (another writing is doubtful)")),
            ("isbn", _("ISBN, exactly as it is written")),
            ("id", _("number, else the same ISBN")),
        ],
    )
    on_match = forms.ChoiceField(
        label=_("If there is such a book"),
        choices=[
            ("leave", _("leave the book as it is")),
            ("replace", _("replace its values by those of the record")),
            ("fill", _("fill only what it leaves empty")),
            ("refuse", _("give the record back")),
        ],
    )
    on_none = forms.ChoiceField(
        label=_("If there is none"), choices=[("add", _("add the book")), ("leave", _("leave the record out"))]
    )

    def __init__(self, columns: Sequence[str], mapping: Mapping[str, str], **options: Any) -> None:
        super().__init__(**options)
        if not has_catalogues():
            del self.fields["complete_missing"]
        choices = [("", _("not in the file")), *((column, column) for column in columns)]
        for member in COLUMN_NAMES:
            self.fields[f"column_{member}"] = forms.ChoiceField(
                label=MEMBER_LABELS[member], choices=choices, required=False, initial=mapping.get(member, "")
            )
        self.order_fields([f"column_{member}" for member in COLUMN_NAMES])

    @property
    def column_fields(self) -> list[forms.BoundField]:
        return [self[f"column_{member}"] for member in COLUMN_NAMES]

    @property
    def rule_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.base_fields if name in self.fields]

    def clean(self) -> dict[str, Any]:
        if not self.errors:
            try:
                require_mapped_members(self.build_rules())
            except UnreadableFile as error:
                raise forms.ValidationError(str(error), "columns") from error
        return self.cleaned_data

    def build_rules(self) -> ImportRules:
        values = self.cleaned_data
        columns = {member: values[f"column_{member}"] for member in COLUMN_NAMES}
        return ImportRules(
            mapping={member: column for member, column in columns.items() if column},
            match_by=values["match_by"],
            on_match=values["on_match"],
            on_none=values["on_none"],
            defaults={"genre": values["default_genre"]} if values["default_genre"] else {},
            complete_missing=values.get("complete_missing", False),
        )

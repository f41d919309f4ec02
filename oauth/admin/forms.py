"""The forms of the admin pages for apps and API keys."""

from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone

from oauth.scopes import DEFAULT_SCOPE, SCOPES, ScopeSet
from oauth.server import redirect_uris, registration


class ScopesField(forms.MultipleChoiceField):
    widget = forms.CheckboxSelectMultiple

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=[(name, f"{name}: {scope.sentence}") for name, scope in SCOPES.items()], **options)

    def clean(self, value: Any) -> ScopeSet:
        return frozenset(super().clean(value))


class AppForm(forms.ModelForm):
    name = forms.CharField(max_length=registration.MAX_NAME_LENGTH, validators=[registration.validate_name])
    redirect_uris = forms.CharField(
        label="Redirect URIs",
        widget=forms.Textarea(attrs={"rows": 4, "class": "vLargeTextField"}),
        validators=[redirect_uris.validate_redirect_uris],
        help_text="One a line: https, or http at 127.0.0.1, [::1] or localhost.",
    )
    scopes = ScopesField(help_text="What people may grant it.")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        allowance = getattr(self.instance, "allowance", None)
        self.initial["scopes"] = allowance.scopes.split() if allowance else [DEFAULT_SCOPE]


class APIKeyForm(forms.ModelForm):
    name = forms.CharField(max_length=100, validators=[registration.validate_name])
    scopes = ScopesField()

    def clean_expires_at(self) -> datetime | None:
        expires_at: datetime | None = self.cleaned_data["expires_at"]
        if expires_at and expires_at <= timezone.now():
            raise ValidationError("A key cannot expire before it is made.")
        return expires_at

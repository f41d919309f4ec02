"""What the desk asks for."""

from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator

from webhooks.encryption import GIVEN, GIVEN_WORDS
from webhooks.models import LEAST_IN_FLIGHT, MOST_IN_FLIGHT, Endpoint
from webhooks.registry import ALL, KINDS
from webhooks.replaying import NO_SPAN
from webhooks.ssrf import RefusedAddress, check_url


class KindsField(forms.MultipleChoiceField):
    """Of kinds, or ALL; stored as one text."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, **options: Any) -> None:
        sentences = {ALL: "All that happens.", **KINDS}
        super().__init__(choices=[(kind, f"{kind}: {words}") for kind, words in sentences.items()], **options)

    def clean(self, value: Any) -> str:
        chosen = super().clean(value)
        return ALL if ALL in chosen else " ".join(kind for kind in KINDS if kind in chosen)


class EndpointForm(forms.ModelForm):
    url = forms.CharField(
        label="URL",
        max_length=Endpoint._meta.get_field("url").max_length,
        widget=forms.TextInput(attrs={"class": "vLargeTextField"}),
    )
    kinds = KindsField(label="Events")
    in_flight_limit = forms.IntegerField(
        label="In flight",
        min_value=LEAST_IN_FLIGHT,
        max_value=MOST_IN_FLIGHT,
        initial=Endpoint._meta.get_field("in_flight_limit").default,
        help_text="How many it is sent at the same time.",
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.initial["kinds"] = self.instance.kinds.split()

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        try:
            check_url(url, settings.WEBHOOKS_ALLOW_PRIVATE)
        except RefusedAddress as error:
            raise ValidationError(str(error)) from error
        return url


class ReplayForm(forms.Form):
    kinds = KindsField(label="Events", initial=[ALL], help_text="All means those that the endpoint takes.")
    after = forms.SplitDateTimeField(label="From (UTC)")
    before = forms.SplitDateTimeField(label="To (UTC)", required=False, help_text="Empty for all until now.")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for name in ("after", "before"):
            widget = forms.SplitDateTimeWidget(date_attrs={"type": "date"}, time_attrs={"type": "time", "step": "1"})
            self.fields[name].widget = widget

    def clean(self) -> dict[str, Any]:
        after, before = self.cleaned_data.get("after"), self.cleaned_data.get("before")
        if after and before and before <= after:
            raise ValidationError(NO_SPAN)
        return self.cleaned_data


class SourceForm(forms.ModelForm):
    secret = forms.CharField(
        label="Add a secret",
        required=False,
        strip=False,
        validators=[RegexValidator(rf"^{GIVEN}\Z", f"A secret is {GIVEN_WORDS}.")],
        widget=forms.PasswordInput(attrs={"class": "vTextField", "autocomplete": "new-password"}),
        help_text="One that the source has made. It is not shown again.",
    )

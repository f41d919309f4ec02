"""Forms of the admin pages."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from library_site.admin.model_admins import build_moment_widget
from library_site.admin.moments import require_utc
from library_site.admin.stored_texts import translate_stored
from library_site.outbound.addresses import ForbiddenAddress
from webhooks import endpoints
from webhooks.encryption import SECRET_PATTERN, can_sign
from webhooks.endpoints import EMPTY_SPAN_MESSAGE
from webhooks.models import MAX_IN_FLIGHT, MIN_IN_FLIGHT, Endpoint, SignatureForm
from webhooks.registry import ALL_KINDS, EVENT_KINDS
from webhooks.signing import MIN_KEY_BYTES, is_usable_secret
from webhooks.ssrf import validate_url


def list_kind_choices() -> list[tuple[str, str]]:
    """A callable, because the admin is imported before the apps register their kinds."""
    kinds = [(kind.name, f"{kind.name}: {gettext(kind.sentence)}") for kind in EVENT_KINDS.values()]
    all_kinds = gettext("All that happens.")
    return [(ALL_KINDS, f"{ALL_KINDS}: {all_kinds}"), *kinds]


class KindsFormField(forms.MultipleChoiceField):
    """A choice of kinds or ALL_KINDS. The value is one string, as in Endpoint.kinds."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=list_kind_choices, **options)

    def clean(self, value: Any) -> str:
        kinds = super().clean(value)
        return ALL_KINDS if ALL_KINDS in kinds else " ".join(kind for kind in EVENT_KINDS if kind in kinds)


class EndpointForm(forms.ModelForm):
    url = forms.CharField(
        label=_("URL"),
        max_length=Endpoint._meta.get_field("url").max_length,
        widget=forms.TextInput(attrs={"class": "vLargeTextField"}),
    )
    kinds = KindsFormField(label=_("Events"))
    in_flight_limit = forms.IntegerField(
        label=_("Events at a time"),
        min_value=MIN_IN_FLIGHT,
        max_value=MAX_IN_FLIGHT,
        initial=Endpoint._meta.get_field("in_flight_limit").default,
        help_text=_("How many are sent to it at the same time. Fewer spare a slow receiver."),
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.initial["kinds"] = self.instance.kinds.split()

    def clean_form(self) -> str:
        """Runs in the transaction that saves the endpoint."""
        form: str = self.cleaned_data["form"]
        try:
            if self.instance.pk and form == SignatureForm.C:
                endpoints.lock_for_standard_form(self.instance)
        except endpoints.NewSecretNeeded as error:
            raise ValidationError(
                gettext("Form C cannot sign with the secret of this endpoint: make a new secret and promote it first.")
            ) from error
        return form

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        try:
            validate_url(url, settings.WEBHOOKS_ALLOW_PRIVATE)
        except ForbiddenAddress as error:
            raise ValidationError(translate_stored(str(error))) from error
        return url


class ReplayForm(forms.Form):
    kinds = KindsFormField(
        label=_("Events"), initial=[ALL_KINDS], help_text=_("All means those that the endpoint takes.")
    )
    after = forms.SplitDateTimeField(label=_("From"), validators=[require_utc])
    before = forms.SplitDateTimeField(
        label=_("To"), required=False, validators=[require_utc], help_text=_("Empty for until now.")
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.label_suffix = ""
        for name in ("after", "before"):
            self.fields[name].widget = build_moment_widget(self.fields[name].label)

    def clean(self) -> dict[str, Any]:
        after, before = self.cleaned_data.get("after"), self.cleaned_data.get("before")
        if after and before and before <= after:
            raise ValidationError(gettext(EMPTY_SPAN_MESSAGE))
        return self.cleaned_data

    def read_span(self, now: datetime) -> dict[str, Any]:
        """Returns the range to replay. Its end is fixed, so that the confirmation is about the same events."""
        end = (now + timedelta(seconds=1)).replace(microsecond=0)
        return {
            "kinds": self.cleaned_data["kinds"],
            "after": self.cleaned_data["after"],
            "before": self.cleaned_data["before"] or end,
        }


class SourceForm(forms.ModelForm):
    """A source can only change to form C if it has a secret for that form."""

    secret = forms.CharField(
        label=_("Add a secret"),
        required=False,
        strip=False,
        validators=[RegexValidator(rf"^{SECRET_PATTERN}\Z", _("A secret is 24 to 200 printable ASCII characters."))],
        widget=forms.PasswordInput(attrs={"class": "vTextField", "autocomplete": "new-password"}),
        help_text=_(
            "One that the source has made; in form C it is whsec_ and base64. Empty to have one made here. It is not"
            " shown again."
        ),
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if name := self.fields.get("name"):
            name.error_messages["invalid"] = _("Letters, digits, _ and - only: the name is part of the address.")

    def clean(self) -> dict[str, Any]:
        form, secret = self.cleaned_data.get("form"), self.cleaned_data.get("secret")
        if form and secret and not is_usable_secret(form, secret):
            self.add_error(
                "secret",
                gettext("In form C a secret is whsec_ and the standard base64 of at least %(count)d bytes.")
                % {"count": MIN_KEY_BYTES},
            )
        elif self.instance.pk and not secret and "form" in self.changed_data and not self.has_usable_secret(form):
            self.add_error("form", gettext("The source has no secret of form C: add one, or make a new one first."))
        return self.cleaned_data

    def has_usable_secret(self, form: str | None) -> bool:
        """Always true for forms A and B, which accept any secret, and can be saved without one."""
        secrets = self.instance.secrets.values_list("sealed", flat=True)
        return form != SignatureForm.C or any(can_sign(SignatureForm.C, secret) for secret in secrets)


def describe_key(form: str) -> str:
    if form == SignatureForm.C:
        return gettext("The key is the bytes whose base64 follows whsec_, as in all libraries of Standard Webhooks.")
    return gettext("The key is the whole text of the secret, in UTF-8.")

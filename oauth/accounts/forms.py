"""The forms of the pages for people."""

import logging
from typing import Any

from django import forms
from django.contrib.auth import forms as auth_forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from library_site.encryption import DecryptionError
from oauth.accounts import totp
from oauth.models import APIKey, SecondFactor, build_active_condition

log = logging.getLogger(__name__)

WRONG_CODE = _("This code is not right, or it was used already. Enter the code that your app shows now.")
WRONG_RECOVERY_CODE = _("This is none of your recovery codes that are left.")
TOO_MANY_WRONG_CODES = _(
    "Too many wrong codes were tried for this account. Use a recovery code, or try again in an hour."
)
WRONG_PASSWORD = _("This is not your password.")
PASSWORD_RULES = _("At least 8 characters, not only digits, no common password, and not like the name.")
# Django's texts: in German, REST framework's catalog would translate them in another tone than these pages.
DJANGO_TEXTS = [
    gettext_noop("Enter a valid URL."),
    gettext_noop("Enter a valid email address."),
]


class AutofocusMixin:
    """Focuses the first field, and after errors the first one that has an error."""

    fields: dict[str, forms.Field]
    focuses_first_field = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.focus(next(iter(self.fields)) if self.focuses_first_field else "")

    def full_clean(self) -> None:
        super().full_clean()  # type: ignore[misc]  # of Django's forms
        errors = self._errors or {}  # type: ignore[attr-defined]  # of Django's forms
        if with_error := next((name for name in self.fields if name in errors), None):
            self.focus(with_error)

    def focus(self, focused_name: str) -> None:
        for name, field in self.fields.items():
            field.widget.attrs.pop("autofocus", None)
            if name == focused_name:
                field.widget.attrs["autofocus"] = True


class AppCodeField(forms.CharField):
    widget = forms.TextInput(attrs={"autocomplete": "one-time-code", "inputmode": "numeric", "spellcheck": "false"})

    def __init__(self, **options: Any) -> None:
        super().__init__(label=_("Code from your app"), max_length=20, **options)


class PasswordField(forms.CharField):
    """The person's current password."""

    widget = forms.PasswordInput(attrs={"autocomplete": "current-password"})

    def __init__(self, **options: Any) -> None:
        super().__init__(label=_("Your password"), strip=False, max_length=4096, **options)


class SignInForm(auth_forms.AuthenticationForm):
    error_messages = {
        **auth_forms.AuthenticationForm.error_messages,
        "invalid_login": _("The username or the password is wrong."),
    }


class CodeForm(AutofocusMixin, forms.Form):
    """Accepts a code of the app or a recovery code. If the form is valid, `factor` is the user's factor."""

    code = AppCodeField(required=False)
    recovery_code = forms.CharField(
        label=_("Recovery code"),
        max_length=40,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )

    def __init__(self, user: User, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.user = user
        self.factor: SecondFactor | None = None

    def clean(self) -> dict[str, Any]:
        if self.cleaned_data.get("recovery_code"):
            self.clean_recovery()
        elif not self.errors:
            self.clean_app_code()
        return self.cleaned_data

    def clean_recovery(self) -> None:
        self.factor = totp.use_recovery_code(self.user, self.cleaned_data["recovery_code"])
        if self.factor is None:
            self.add_error("recovery_code", WRONG_RECOVERY_CODE)

    def clean_app_code(self) -> None:
        try:
            self.factor = totp.use_code(self.user, self.cleaned_data["code"], timezone.now())
        except totp.TooManyWrongCodes:
            self.add_error("code", TOO_MANY_WRONG_CODES)
            return
        except DecryptionError:
            log.error("The second factor of user %s cannot be decrypted: SECRET_KEY changed.", self.user.pk)  # noqa: TRY400
        if self.factor is None:
            self.add_error("code", WRONG_CODE)


class SetUpForm(AutofocusMixin, forms.Form):
    """Accepts the first code of a new app. A person who signed in long ago also enters the password."""

    # The steps above it would leave the screen.
    focuses_first_field = False

    code = AppCodeField()
    password = PasswordField()

    def __init__(self, user: User, secret: str, asks_password: bool, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.user, self.secret = user, secret
        self.step: int | None = None
        if not asks_password:
            del self.fields["password"]

    def clean_code(self) -> str:
        code: str = self.cleaned_data["code"]
        self.step = totp.find_step(self.secret, totp.normalize_code(code), timezone.now())
        if self.step is None:
            raise ValidationError(WRONG_CODE)
        return code

    def clean_password(self) -> str:
        return check_password(self.user, self.cleaned_data["password"])


class ResetRequestForm(AutofocusMixin, auth_forms.PasswordResetForm):
    """Django's form, but only the address is used: the worker finds the users."""


class PasswordRulesMixin:
    """Django's rules in one sentence, and what is wrong with a password at the field that has it."""

    fields: dict[str, forms.Field]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        first, second = (name for name in self.fields if name.endswith(("password1", "password2")))
        self.fields[first].help_text = PASSWORD_RULES
        self.fields[second].help_text = ""

    def validate_password_for_user(self, user: User, *_names: str) -> None:
        first = next(name for name in self.fields if name.endswith("password1"))
        super().validate_password_for_user(user, password_field_name=first)  # type: ignore[misc]  # of Django's forms


class NewPasswordForm(PasswordRulesMixin, AutofocusMixin, auth_forms.SetPasswordForm):
    """Offers to revoke the person's API keys: a new password alone does not revoke them."""

    revoke_keys = forms.BooleanField(label=_("Revoke my API keys too"), required=False)

    def __init__(self, user: User, *arguments: Any, **options: Any) -> None:
        super().__init__(user, *arguments, **options)
        if not APIKey.objects.filter(build_active_condition(timezone.now()), owner=user).exists():
            del self.fields["revoke_keys"]


class PasswordChangeForm(PasswordRulesMixin, AutofocusMixin, auth_forms.PasswordChangeForm):
    """Django's."""


class ProfileForm(AutofocusMixin, forms.ModelForm):
    """A new mail address needs the current password: a reset link would go to the new address."""

    focuses_first_field = False

    password = PasswordField(required=False, help_text=_("Only to change the email address."))

    class Meta:
        model = User
        fields = ("first_name", "last_name", "email")
        widgets = {
            "first_name": forms.TextInput(attrs={"autocomplete": "given-name"}),
            "last_name": forms.TextInput(attrs={"autocomplete": "family-name"}),
            "email": forms.EmailInput(attrs={"autocomplete": "email"}),
        }

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        return check_password(self.instance, password) if password else ""

    def clean(self) -> dict[str, Any]:
        if "email" in self.changed_data and not self.cleaned_data.get("password") and "password" not in self.errors:
            self.add_error("password", _("Enter your password to change the email address."))
        return self.cleaned_data

    @property
    def changed_columns(self) -> list[str]:
        return [name for name in self.changed_data if name != "password"]


def check_password(user: User, password: str) -> str:
    """Raises ValidationError."""
    if not user.check_password(password):
        raise ValidationError(WRONG_PASSWORD)
    return password

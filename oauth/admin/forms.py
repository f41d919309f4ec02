"""The forms of the admin pages for apps, API keys and people."""

from datetime import datetime
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.forms import AdminPasswordChangeForm
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_noop, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from library_site.admin.badges import format_lines
from oauth.accounts import roles
from oauth.accounts.forms import PasswordRulesMixin
from oauth.scopes import ALL_SCOPES, DEFAULT_SCOPE, NO_SCOPES, SCOPES, ScopeSet, format_scopes, get_user_scopes
from oauth.server import redirect_uris, registration


class ScopesFormField(forms.MultipleChoiceField):
    widget = forms.CheckboxSelectMultiple

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.offer(ALL_SCOPES)

    def offer(self, scopes: ScopeSet) -> None:
        self.choices = partial(list_scope_choices, scopes)

    def clean(self, value: Any) -> ScopeSet:
        return frozenset(super().clean(value))


def list_scope_choices(scopes: ScopeSet) -> list[tuple[str, str]]:
    """A callable, so that the sentences are in the language of the request."""
    return [(name, f"{name}: {SCOPES[name].sentence}") for name in format_scopes(scopes).split()]


class AppForm(forms.ModelForm):
    name = forms.CharField(
        label=_("Name"),
        max_length=registration.MAX_NAME_LENGTH,
        widget=forms.TextInput(attrs={"class": "vTextField"}),
        validators=[registration.validate_name],
        help_text=_("People read it when the app asks to be let in."),
    )
    redirect_uris = forms.CharField(
        label=_("Redirect URIs"),
        widget=forms.Textarea(attrs={"rows": 4, "class": "vLargeTextField"}),
        validators=[redirect_uris.validate_redirect_uris],
        help_text=_(
            "Where the app gets people back after they have let it in: the addresses that its makers name. One a line:"
            " https, or http at 127.0.0.1, [::1] or localhost."
        ),
    )
    scopes = ScopesFormField(
        label=_("Scopes"), help_text=_("What the app may ask people for. Each person decides what it gets of that.")
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        allowance = getattr(self.instance, "allowance", None)
        self.initial["scopes"] = allowance.scopes.split() if allowance else [DEFAULT_SCOPE]
        if registration.acts_for_itself(self.instance):
            self.fields["redirect_uris"].required = False


class APIKeyForm(forms.ModelForm):
    """Offers the scopes that the owner may have. If the owner is a field of the form, `clean` rejects other scopes."""

    # Set on the class that the admin makes for each request.
    creator: User
    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        widget=forms.TextInput(attrs={"class": "vTextField"}),
        validators=[registration.validate_name],
        help_text=_("Such as the program that uses the key. The history names it."),
    )
    scopes = ScopesFormField(label=_("Scopes"), help_text=_("What a program with this key may do."))

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        field = self.fields.get("scopes")
        if isinstance(field, ScopesFormField) and "owner" not in self.fields:
            field.offer(get_user_scopes(self.creator))

    def clean(self) -> dict[str, Any]:
        owner = self.cleaned_data.get("owner", self.creator)
        missing_scopes = self.cleaned_data.get("scopes", NO_SCOPES) - get_user_scopes(owner)
        if missing_scopes:
            message = gettext("%(owner)s may not have: %(scopes)s.")
            self.add_error("scopes", message % {"owner": owner, "scopes": format_scopes(missing_scopes)})
        return self.cleaned_data

    def clean_expires_at(self) -> datetime | None:
        expires_at: datetime | None = self.cleaned_data["expires_at"]
        if expires_at and expires_at <= timezone.now():
            raise ValidationError(_("A key cannot expire before it is made."))
        return expires_at


# The groups that the library creates.
GROUP_NAMES = [gettext_noop("Librarians"), gettext_noop("Developers"), gettext_noop("Head librarians")]


USERNAME_RULE = _("Letters, digits and . - _ + @")
MAY_LABEL = pgettext_lazy("what a person may do", "May")


class RowsField(forms.ModelMultipleChoiceField):
    """Rejects ids that no row can have and that make the database fail."""

    def clean(self, value: Any) -> Any:
        rows: Any = self.queryset
        for pk in value or ():
            rows.model._meta.pk.clean(pk, None)
        return super().clean(value)


class PermissionsWidget(forms.CheckboxSelectMultiple):
    """Offers the sentences of `roles`, in groups, and then the permissions that no checked sentence contains.

    Django has permissions for all tables: only those that permit something are offered, and those that are granted.

    The value of a sentence is the ids of its permissions, separated by commas.
    """

    template_name = "admin/permissions.html"

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return [pk for value in data.getlist(name) for pk in value.split(",")]

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        *groups, singles = self.list_groups(set(map(str, value or ())))
        return {"id": (attrs or {}).get("id"), "name": name, "groups": groups, "singles": singles}

    def list_groups(self, checked: set[str]) -> list[tuple[str, list[Any]]]:
        """Returns the headings, each with the values, labels and states of its checkboxes."""
        choices: Any = self.choices
        permissions = {roles.get_full_codename(one): one for one in choices.queryset.select_related("content_type")}
        groups: dict[str, list[Any]] = {}
        described: set[str] = set()
        for sentence, needed in roles.ROLE_SENTENCES.items():
            if needed <= permissions.keys():
                pks = {str(permissions[codename].pk) for codename in needed}
                described |= pks if pks <= checked else set()
                options = groups.setdefault(roles.get_group_name(needed), [])
                options.append((",".join(sorted(pks)), sentence, pks <= checked))
        effective = frozenset().union(*roles.ROLE_SENTENCES.values())
        rest = [
            (str(one.pk), roles.describe_permission(one), str(one.pk) in checked)
            for codename, one in permissions.items()
            if str(one.pk) not in described
            and (
                str(one.pk) in checked
                or codename in effective
                or admin.site.is_registered(one.content_type.model_class())
            )
        ]
        # The books' app is the last to register its sentences, and permits what most people need.
        return [*reversed(groups.items()), (gettext("Single permissions"), rest)]


class RolesField(RowsField):
    widget = forms.CheckboxSelectMultiple

    def __init__(self, queryset: Any = None, **options: Any) -> None:
        groups = Group.objects.none() if queryset is None else queryset
        super().__init__(groups.order_by("name").prefetch_related(roles.GROUP_PERMISSIONS), **options)

    def label_from_instance(self, group: Any) -> str:
        lines = format_lines(roles.describe_group(group))
        return format_html('<span class="role"><strong>{}</strong> {}</span>', gettext(group.name), lines)


class InvitationForm(forms.ModelForm):
    """Adds a user, who gets a mail with a link to choose the password."""

    # The groups that the inviting user may grant.
    grantable_groups = Group.objects.none()

    email = forms.EmailField(
        label=_("Email address"),
        widget=forms.EmailInput(attrs={"class": "vTextField"}),
        help_text=_("The invitation goes there."),
    )
    groups = RolesField(
        label=MAY_LABEL,
        required=False,
        help_text=_("Without any, the person reads books and lets apps read them."),
    )

    class Meta:
        model = User
        fields = ("username", "first_name", "last_name", "email", "groups", "is_superuser")
        labels = {"is_superuser": _("May do everything")}
        help_texts = {
            "username": USERNAME_RULE,
            "is_superuser": _("Runs the library: invites people, and says what each may do."),
        }

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        groups: Any = self.fields["groups"]
        groups.queryset = self.grantable_groups.order_by("name").prefetch_related(roles.GROUP_PERMISSIONS)

    def clean_email(self) -> str:
        address: str = self.cleaned_data["email"]
        if user := User.objects.filter(email__iexact=address).first():
            raise ValidationError(_("%(name)s has this address already."), params={"name": user})
        return address

    def save(self, commit: bool = True) -> User:
        """Roles need access to the admin. The new user has no usable password yet."""
        self.instance.set_unusable_password()
        self.instance.is_staff = self.instance.is_superuser or bool(self.cleaned_data["groups"])
        user: User = super().save(commit)
        return user


class PasswordForm(PasswordRulesMixin, AdminPasswordChangeForm):
    """Django's, without the choice to sign in by other means than a password: there are none."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.label_suffix = ""
        self.fields.pop("usable_password", None)
        for field in self.fields.values():
            field.widget.attrs["class"] = "vTextField"

"""The desk for apps, the access people gave them, and API keys. The answer to its making alone shows a secret."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, Grant, IDToken, RefreshToken

from library_site.admin.base import OwnersAdmin, ReadOnlyAdmin
from oauth import api_keys, scopes
from oauth.models import APIKey, Authorization
from oauth.scopes import DEFAULT, SCOPES, Granted
from oauth.server import redirect_uris, registration
from oauth.tokens import revocations

# Tokens are ended by ending the access they belong to.
admin.site.unregister([Application, AccessToken, RefreshToken, Grant, IDToken])


class ScopesField(forms.MultipleChoiceField):
    widget = forms.CheckboxSelectMultiple

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=[(name, f"{name}: {scope.sentence}") for name, scope in SCOPES.items()], **options)

    def clean(self, value: Any) -> Granted:
        return frozenset(super().clean(value))


class AppForm(forms.ModelForm):
    name = forms.CharField(max_length=registration.LONGEST_NAME, validators=[registration.check_name])
    redirect_uris = forms.CharField(
        label="Redirect URIs",
        widget=forms.Textarea(attrs={"rows": 4, "class": "vLargeTextField"}),
        validators=[redirect_uris.check],
        help_text="One a line: https, or http at 127.0.0.1, [::1] or localhost.",
    )
    scopes = ScopesField(help_text="What people may grant it.")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        allowance = getattr(self.instance, "allowance", None)
        self.initial["scopes"] = allowance.scopes.split() if allowance else [DEFAULT]


@admin.register(Application)
class AppAdmin(OwnersAdmin):
    owner = "user"
    form = AppForm
    lookups = ("client_type__exact",)
    list_display = ("name", "client_type", "may_be_granted", "user", "created", "client_id")
    list_filter = ("client_type",)
    list_select_related = ("allowance", "user")
    search_fields = ("name", "client_id", "user__username")
    ordering = ("-pk",)
    raw_id_fields = ("user",)
    radio_fields = {"client_type": admin.VERTICAL}
    actions = ("make_new_secret",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        asked = ["name", "client_type", "redirect_uris", "scopes", *(["user"] if request.user.is_superuser else [])]
        return [*asked, "client_id", "client_secret_kept", "created", "updated"] if obj else asked

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("client_type", "client_id", "client_secret_kept", "created", "updated") if obj else ()

    @admin.display(description="scopes")
    def may_be_granted(self, app: Any) -> str:
        return app.allowance.scopes if hasattr(app, "allowance") else DEFAULT

    @admin.display(description="client secret")
    def client_secret_kept(self, app: Any) -> str:
        if not registration.confidential(app):
            return "A public app has none."
        return 'Kept as a hash. "Make a new secret" in the list of apps replaces it.'

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        granted = form.cleaned_data["scopes"]
        if change:
            registration.change(obj, granted, timezone.now())
        else:
            obj.user = obj.user or (None if request.user.is_superuser else request.user)
            obj.new_secret = registration.register(obj, granted)

    def response_add(self, request: HttpRequest, obj: Any, *arguments: Any, **options: Any) -> HttpResponse:
        secret = {"client_secret": obj.new_secret} if obj.new_secret else {}
        return self.told_once(request, obj, {"client_id": obj.client_id, **secret})

    @admin.action(description="Make a new secret", permissions=["change"])
    def make_new_secret(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """For one at a time: what uses the old one fails from now on."""
        apps = list(queryset[:2])
        try:
            (app,) = apps
            secret = registration.renew_secret(app)
        except (ValueError, registration.NoSecret):
            self.message_user(request, "Nothing was changed: select one confidential app.", messages.ERROR)
            return None
        self.note(request, queryset, "Made a new secret.")
        return self.told_once(request, app, {"client_id": app.client_id, "client_secret": secret})

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Each app with what ends, where Django would list every token."""
        alive = Authorization.objects.filter(ended_at=None)
        lines = [f"{app}: ends the access of {alive.filter(application=app).count()} people" for app in objs]
        return lines, {str(self.opts.verbose_name_plural): len(lines)}, set(), []


@admin.register(Authorization)
class AuthorizationAdmin(ReadOnlyAdmin, OwnersAdmin):
    owner = "application__user"
    lookups = ("ended_at__isempty",)
    list_display = ("user", "application", "scopes", "created_at", "refreshed_at", "ended_at")
    list_display_links = None
    list_filter = (("ended_at", admin.EmptyFieldListFilter),)
    list_select_related = ("user", "application")
    search_fields = ("user__username", "application__name", "application__client_id")
    ordering = ("-created_at",)
    actions = ("end",)

    @admin.action(description="End the selected access", permissions=["change"])
    def end(self, request: HttpRequest, queryset: QuerySet[Authorization]) -> None:
        # A search joins other tables, whose rows must not be locked.
        ended = revocations.end(Authorization.objects.filter(pk__in=queryset.values("pk")), timezone.now())
        self.note(request, queryset, "Ended.")
        self.message_user(request, f"Access ended: {ended}.", messages.SUCCESS)


class KeyForm(forms.ModelForm):
    name = forms.CharField(max_length=100, validators=[registration.check_name])
    scopes = ScopesField()

    def clean_expires_at(self) -> datetime | None:
        expires_at: datetime | None = self.cleaned_data["expires_at"]
        if expires_at and expires_at <= timezone.now():
            raise ValidationError("A key cannot expire before it is made.")
        return expires_at


@admin.register(APIKey)
class KeyAdmin(OwnersAdmin):
    owner = "owner"
    form = KeyForm
    lookups = ("revoked_at__isempty",)
    list_display = ("name", "begins", "owner", "scopes", "last_used_at", "expires_at", "revoked_at")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    list_select_related = ("owner",)
    search_fields = ("name", "prefix", "owner__username")
    ordering = ("-pk",)
    raw_id_fields = ("owner",)
    actions = ("revoke",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        if obj:
            return ["name", "begins", "owner", "scopes", "created_at", "last_used_at", "expires_at", "revoked_at"]
        return ["name", "scopes", "expires_at", *(["owner"] if request.user.is_superuser else [])]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"scopes": [DEFAULT], "owner": request.user.pk}

    @admin.display(description="begins with")
    def begins(self, key: APIKey) -> str:
        return f"lib_{key.prefix}"

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """For the action alone: what a key is for does not change."""
        return obj is None and super().has_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who looks for a revoked key finds it."""
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Inside the transaction that Django's own view has opened. Raises TooManyKeys."""
        given, owner = form.cleaned_data, form.cleaned_data.get("owner", request.user)
        made, obj.text = api_keys.make(owner, given["name"], given["scopes"], timezone.now(), given["expires_at"])
        obj.pk, obj.prefix, obj.owner = made.pk, made.prefix, owner
        obj.missing = scopes.text(given["scopes"] - scopes.allowed_to(owner))

    def response_add(self, request: HttpRequest, obj: Any, *arguments: Any, **options: Any) -> HttpResponse:
        note = f"{obj.owner} may not have these scopes now, and the key is not good for them: {obj.missing}."
        return self.told_once(request, obj, {"API key": obj.text}, note if obj.missing else "")

    def add_view(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        try:
            return super().add_view(request, *arguments, **options)
        except api_keys.TooManyKeys:
            words = f"No key was made: {api_keys.MOST} are there already; revoke one first."
            self.message_user(request, words, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    @admin.action(description="Revoke the selected keys", permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[APIKey]) -> None:
        revoked = api_keys.revoke(APIKey.objects.filter(pk__in=queryset.values("pk")), timezone.now())
        self.note(request, queryset, "Revoked.")
        self.message_user(request, f"Keys revoked: {revoked}.", messages.SUCCESS)

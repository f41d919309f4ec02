"""The admin pages of users and groups: Django's own, with invitations.

Users may grant only the permissions that they have themselves. In Django, everyone who may change users can make a
superuser, or set a superuser's password.
"""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Count, ManyToManyField, QuerySet
from django.forms import CheckboxSelectMultiple, ModelMultipleChoiceField
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_noop, ngettext
from django.utils.translation import gettext_lazy as _

from library_site.admin.badges import format_badge, format_lines
from library_site.admin.model_admins import DescribedDeletionMixin, ValidatingAdmin, build_words_filter
from library_site.admin.moments import moment_column
from oauth.accounts import mails, roles
from oauth.admin.forms import (
    MAY_LABEL,
    USERNAME_RULE,
    InvitationForm,
    PasswordForm,
    PermissionsWidget,
    RolesField,
    RowsField,
)

# A title of Django without a German translation.
SET_PASSWORD = gettext_noop("Set password: %s")

LABELS = {
    "is_active": _("May sign in"),
    "is_staff": _("Sees the pages of the library"),
    "is_superuser": _("May do everything"),
}
HELP_TEXTS = {
    "username": USERNAME_RULE,
    "is_active": _("Without it the person's apps, keys and webhooks stop, too."),
    "is_staff": _("Librarians and developers work in them."),
    "is_superuser": _("Runs the library: invites people, and says what each may do."),
    "groups": _("Who is in several may do what each of them permits."),
    "user_permissions": _("Beside what the groups permit."),
}
# How the form shows the groups of a user, and the permissions of a user or group.
FIELD_OPTIONS: dict[Any, dict[str, Any]] = {
    Group: {"form_class": RolesField, "widget": CheckboxSelectMultiple},
    Permission: {"form_class": RowsField, "widget": PermissionsWidget, "label": MAY_LABEL},
}

admin.site.unregister([User, Group])


class DelegatingAdmin(DescribedDeletionMixin, ValidatingAdmin):
    """A user cannot change or delete users and groups that have more permissions, or grant more than their own."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and may_manage(request.user, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and may_manage(request.user, obj)

    def find_missing(self, request: HttpRequest, objs: Iterable[Any]) -> set[str]:
        """Returns the name of the model if some of these rows have more permissions than the user who deletes them."""
        pks = [obj.pk for obj in objs]
        is_allowed = list_manageable(self.model, request.user).filter(pk__in=pks).count() == len(pks)
        return set() if is_allowed else {str(self.opts.verbose_name)}

    def formfield_for_manytomany(
        self, db_field: "ManyToManyField[Any, Any]", request: Any = None, **options: Any
    ) -> ModelMultipleChoiceField | None:
        # Django's two lists have no accessible names, and do not fit on a phone.
        options |= {
            "queryset": list_manageable(db_field.related_model, request.user),
            **FIELD_OPTIONS[db_field.related_model],
        }
        return super().formfield_for_manytomany(db_field, request, **options)


def may_manage(manager: Any, obj: Any) -> bool:
    """Whether this user or group has no more permissions than the manager; true for the list, where `obj` is None."""
    return obj is None or list_manageable(type(obj), manager).filter(pk=obj.pk).exists()


def list_manageable(model: Any, manager: Any) -> QuerySet[Any]:
    """Returns the users, groups or permissions without any permission that the manager lacks."""
    if manager.is_superuser:
        rows: QuerySet[Any] = model._default_manager.all()
        return rows
    held = roles.list_permissions(manager)
    missing = Permission.objects.exclude(pk__in=held)
    users = User.objects.exclude(is_superuser=True).exclude(user_permissions__in=missing)
    return {
        Permission: held,
        Group: Group.objects.exclude(permissions__in=missing),
        User: users.exclude(groups__permissions__in=missing),
    }[model]


class GroupFilter(admin.RelatedFieldListFilter):
    """Names the groups of the library in the language of the page."""

    def field_choices(self, *arguments: Any) -> list[Any]:
        return [(pk, gettext(str(name))) for pk, name in super().field_choices(*arguments)]


@admin.register(User)
class LibraryUserAdmin(DelegatingAdmin, UserAdmin):
    """Adds users by invitation: they choose their passwords themselves."""

    allowed_lookups = (
        "is_staff__exact",
        "is_superuser__exact",
        "is_active__exact",
        "groups__id__exact",
        "groups__isnull",
    )
    add_form: Any = InvitationForm
    change_password_form = PasswordForm
    add_fieldsets: Any = ((None, {"fields": ("username", "first_name", "last_name", "email", "groups")}),)
    add_label = _("Invite a person")
    list_display = ("username", "full_name", "email", "may", "state", "sign_in")
    search_help_text = _("Name, username or email address")
    list_filter = (
        ("groups", GroupFilter),
        ("is_active", build_words_filter(admin.BooleanFieldListFilter, _("active"), _("inactive"))),
    )
    list_select_related = ("second_factor",)
    fieldsets = (
        (None, {"fields": ("username", "first_name", "last_name", "email", "password_link")}),
        (_("What this person may do"), {"fields": ("is_active", "is_staff", "is_superuser", "groups")}),
        (_("Further permissions"), {"fields": ("user_permissions",), "classes": ("collapse",)}),
        (_("Details"), {"fields": ("last_sign_in", "joining_time"), "classes": ("collapse",)}),
    )
    # For those who may see people and not change them.
    view_fields = ("username", "first_name", "last_name", "email", "is_active", "may_sentences")
    actions = ("invite_again",)
    last_sign_in = moment_column("last_login", _("last sign-in"), otherwise=_("never signed in"))
    joining_time = moment_column("date_joined", _("added"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        return super().get_queryset(request).prefetch_related("groups")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Only superusers can make superusers."""
        if obj and not self.has_change_permission(request, obj):
            return ((None, {"fields": self.view_fields}),)
        fieldsets = super().get_fieldsets(request, obj)
        if obj or not request.user.is_superuser:
            return fieldsets
        return (*fieldsets, (None, {"fields": ("is_superuser",)}))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = ("password_link", "last_sign_in", "joining_time", "may_sentences")
        return names if request.user.is_superuser else (*names, "is_superuser")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        if obj:
            options |= {"labels": LABELS, "help_texts": HELP_TEXTS}
        form: Any = super().get_form(request, obj, change=change, **options)
        form.grantable_groups = list_manageable(Group, request.user)
        return form

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not change:
            mails.invite(obj, timezone.now())

    def response_add(self, request: HttpRequest, obj: User, post_url_continue: str | None = None) -> HttpResponse:
        self.message_user(request, gettext("An invitation goes to %(address)s.") % {"address": obj.email})
        return self.response_post_save_add(request, obj)

    @admin.display(description=_("name"))
    def full_name(self, user: User) -> str:
        return user.get_full_name()

    @admin.display(description=MAY_LABEL)
    def may(self, user: User) -> str:
        """Names the groups; the page of the person has the sentences."""
        names = [gettext(group.name) for group in user.groups.all()]
        return gettext("Everything") if user.is_superuser else ", ".join(names) or gettext("Read books")

    @admin.display(description=MAY_LABEL)
    def may_sentences(self, user: User) -> str:
        return format_lines(roles.describe_user(user))

    @admin.display(description=_("signs in with"))
    def sign_in(self, user: User) -> str:
        if not user.has_usable_password():
            return gettext("nothing yet")
        return gettext("password and code") if hasattr(user, "second_factor") else gettext("password")

    @admin.display(description=_("signs in with"))
    def password_link(self, user: User) -> str:
        words = gettext("Change password") if user.has_usable_password() else gettext("Set a password")
        address = reverse("admin:auth_user_password_change", args=[user.pk])
        return format_html('{} <a class="button small" href="{}">{}</a>', self.sign_in(user), address, words)

    @admin.action(description=_("Invite again"), permissions=["change"])
    def invite_again(self, request: HttpRequest, users: QuerySet[User]) -> None:
        invited = [user for user in users if may_be_invited(user)]
        for user in invited:
            mails.invite(user, timezone.now())
        count = users.count() - len(invited)
        if invited:
            words = ngettext("The person is invited.", "%(count)d people are invited.", len(invited))
            self.report(request, words, len(invited))
        if count:
            message = gettext("%(count)d not invited: they have a password or no email address, or are not active.")
            self.message_user(request, message % {"count": count}, messages.WARNING)

    @admin.display(description=_("state"))
    def state(self, user: User) -> str:
        if not user.is_active:
            return format_badge(gettext("Inactive"), "warning")
        if not user.has_usable_password():
            return format_badge(gettext("Invited"))
        return format_badge(gettext("Active"), "good")

    def is_possible(self, action: str, row: User) -> bool:
        return may_be_invited(row)

    def describe_deletion(self, obj: User) -> str:
        return gettext("%(user)s: their apps and API keys are deleted, too") % {"user": obj}


def may_be_invited(user: User) -> bool:
    """Others can request a link to choose a new password."""
    return bool(user.is_active and user.email and not user.has_usable_password())


@admin.register(Group)
class LibraryGroupAdmin(DelegatingAdmin, GroupAdmin):
    """The page has no filters, so no lookups are allowed."""

    add_label = _("Add a group")
    empty_sentence = _("There is no group yet.")
    list_display = ("role", "may", "people")
    search_fields = ()
    page_help: Any = _(
        "A group is a role: who is in it may do what the group permits. A person can be in several, and may do more"
        " besides."
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        groups = super().get_queryset(request).prefetch_related(roles.GROUP_PERMISSIONS)
        counted_groups: QuerySet[Any] = groups.annotate(people=Count("user"))
        return counted_groups

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("name", "may") if obj and not self.has_change_permission(request, obj) else ("name", "permissions")

    def get_headline(self, row: Group) -> str:
        return gettext(row.name)

    @admin.display(description=_("group"), ordering="name")
    def role(self, group: Group) -> str:
        return gettext(group.name)

    @admin.display(description=MAY_LABEL)
    def may(self, group: Group) -> str:
        return format_lines(roles.describe_group(group))

    @admin.display(description=_("people"))
    def people(self, group: Any) -> str:
        return ngettext("%(count)d person", "%(count)d people", group.people) % {"count": group.people}

    def describe_deletion(self, obj: Group) -> str:
        return gettext("%(group)s: who is in it may no longer do what it permits") % {"group": gettext(obj.name)}

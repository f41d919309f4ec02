"""Base classes for the admin: they reject input that makes Django fail, and never count a whole table."""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import Field as Column
from django.db.models import ForeignKey, QuerySet
from django.forms import Field
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from library_site.admin.moments import require_utc
from library_site.admin.paginator import MAX_COUNT, BoundedPaginator
from library_site.admin.stored_texts import translate_stored


class ValidatingAdmin(admin.ModelAdmin):
    """Rejects input that makes Django's admin fail. The page of a row has buttons for its actions."""

    empty_value_display = ""
    # Django takes half a millisecond for a row.
    list_per_page = 50
    # Only the lookups of `list_filter`: Django would allow any lookup of any column, even regular expressions.
    allowed_lookups: ClassVar[tuple[str, ...]] = ()
    # The page of an empty list says this, and leads to `add_label`, or else to the title and URL name of another page.
    empty_sentence: Any = ""
    empty_place: tuple[Any, str] | None = None
    # These make sense for one row at a time: they are buttons of its page, and not of the list.
    actions_for_one: ClassVar[tuple[str, ...]] = ()
    # Their buttons are red, as that of a deletion.
    danger_actions: ClassVar[tuple[str, ...]] = ()
    # The words of the button that leads to an empty form, of its heading, and of the button that sends it.
    add_label: Any = ""

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        # PostgreSQL cannot store NUL.
        return lookup in self.allowed_lookups and "\0" not in value

    def formfield_for_dbfield(self, db_field: "Column[Any, Any]", request: HttpRequest, **options: Any) -> Field | None:
        field = super().formfield_for_dbfield(db_field, request, **options)
        if field and isinstance(field.widget, RelatedFieldWidgetWrapper):
            # Without Django's links to forms in windows of their own.
            field.widget = field.widget.widget
        if field and isinstance(field.widget, forms.SplitDateTimeWidget):
            field.widget = build_moment_widget(field.label)
            field.validators = [*field.validators, require_utc]
        return field

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *arguments: Any, **options: Any
    ) -> HttpResponse:
        context["adminform"].form.label_suffix = ""
        # One way to save.
        context.setdefault("show_save_and_continue", False)
        context.setdefault("show_save_and_add_another", False)
        row = context["original"]
        if row:
            context |= {"buttons": self.list_buttons(request, row), "pages": self.get_links(request, row)}
            context["headline"] = self.get_headline(row)
        elif self.add_label:
            context["title"] = self.add_label
        return super().render_change_form(request, context, *arguments, **options)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """The list offers what can be done with several rows. The page of a row sends its actions to the list."""
        actions = super().get_actions(request)
        match = request.resolver_match
        is_list = bool(match and (match.url_name or "").endswith("_changelist")) and request.method != "POST"
        return {name: action for name, action in actions.items() if not (is_list and name in self.actions_for_one)}

    def list_buttons(self, request: HttpRequest, row: Any) -> dict[str, str]:
        """The labels of the actions that are possible for the row now, by name."""
        actions = self.get_action_choices(request, default_choices=[])
        return {name: label for name, label in actions if name != "delete_selected" and self.is_possible(name, row)}

    def is_possible(self, action: str, row: Any) -> bool:
        """Whether the action would change anything for the row now."""
        return True

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Django's message repeats the name of the model, and its other ways to save are not offered."""
        if IS_POPUP_VAR in request.POST:
            return super().response_change(request, obj)
        self.message_user(request, _("%(name)s is saved.") % {"name": self.get_headline(obj)}, messages.SUCCESS)
        return self.response_post_save_change(request, obj)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Does not log a form that changed nothing."""
        return super().log_change(request, obj, message) if message else None

    def report(self, request: HttpRequest, message: str, count: int) -> None:
        """Says what an action did, in words that may have a count, or that it did nothing."""
        text = message % {"count": count} if count else _("Nothing was changed.")
        self.message_user(request, text, messages.SUCCESS if count else messages.WARNING)

    def get_headline(self, row: Any) -> str:
        return str(row)

    def get_links(self, request: HttpRequest, row: Any) -> dict[str, str]:
        """The titles of related pages of the row, by URL."""
        return {}

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Translates the messages of `record_action`; Django translates its own entries."""
        page = super().history_view(request, object_id, {"title": _("History"), **(extra_context or {})})
        context = getattr(page, "context_data", {})
        if "object" in context:
            context["row_name"] = self.get_headline(context["object"])
        for entry in context.get("action_list", ()):
            if not entry.change_message.startswith("["):
                entry.change_message = translate_stored(entry.change_message)
        return page

    def render_delete_form(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        return super().render_delete_form(request, {**context, "row_name": self.get_headline(context["object"])})

    def get_paginator(self, request: HttpRequest, queryset: Any, *arguments: Any, **options: Any) -> Any:
        """The history of a row begins with the newest entry."""
        rows = queryset.reverse() if queryset.model is LogEntry else queryset
        return super().get_paginator(request, rows, *arguments, **options)

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> HttpResponse:
        """Leads to the list; Django leads to the first page."""
        messages.warning(request, _("That does not exist: it was deleted, or the address is wrong."))
        if self.has_view_or_change_permission(request):
            return HttpResponseRedirect(reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist"))
        return HttpResponseRedirect(reverse("admin:index"))

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """An empty `_to_field` is not a field."""
        return super().get_object(request, object_id, from_field or None)

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any], *others: Any) -> HttpResponse | None:
        """Rejects invalid ids, and a deletion whose confirmation page could list a million rows."""
        if not all(map(self.is_valid_id, request.POST.getlist(ACTION_CHECKBOX_NAME))):
            message = _("What was selected is no longer there.")
        elif is_delete_all(request) and queryset[MAX_COUNT:].exists():
            message = _("Nothing was deleted: select %(count)s at most.") % {
                "count": number_format(MAX_COUNT, force_grouping=True)
            }
        else:
            return super().response_action(request, queryset)
        self.message_user(request, message, messages.ERROR)
        return HttpResponseRedirect(request.get_full_path())

    def is_valid_id(self, text: str) -> bool:
        try:
            self.opts.pk.clean(text, None)
        except ValidationError:
            return False
        return True


class DescribedDeletionMixin:
    """Its page before a deletion has one line for each row; Django would list every row that refers to it."""

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        lines = [self.describe_deletion(obj) for obj in objs]
        names = {str(cast("Any", self).opts.verbose_name_plural): len(lines)}
        return lines, names, self.find_missing(request, objs), []

    def describe_deletion(self, obj: Any) -> str:
        raise NotImplementedError

    def find_missing(self, request: HttpRequest, objs: Iterable[Any]) -> set[str]:
        """Returns what the user would need to delete these rows."""
        return set()


class BaseAdmin(ValidatingAdmin):
    """Admin pages for tables with up to a million rows, and for secrets."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    view_on_site = False
    # An explanation at the top of the page, for people who do not know its terms.
    page_help: Any = ""

    def show_once(self, request: HttpRequest, obj: Any, secrets: dict[str, str], note: str = "") -> HttpResponse:
        """Shows a new secret, which is not stored. The admin's no-store keeps it out of browser caches, too."""
        context = {
            **self.admin_site.each_context(request),
            "title": _("Copy it now"),
            "name": self.get_headline(obj),
            "opts": self.opts,
            "object": obj,
            "secrets": secrets,
            "note": note,
        }
        return TemplateResponse(request, "admin/show_once.html", context)

    def record_action(self, request: HttpRequest, rows: Iterable[Any], message: str) -> None:
        """Writes an English message into the history of each row; `translate_stored` translates it when it is shown."""
        user: Any = request.user
        LogEntry.objects.log_actions(user.pk, rows, CHANGE, change_message=message)


class ReadOnlyAdmin(BaseAdmin):
    """Admin pages for rows that only the library writes."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The list allows actions; a single row cannot be changed."""
        return obj is None and super().has_change_permission(request)


class WordsFilter(admin.FieldListFilter):
    """A filter of states with labels of its own instead of Django's "Empty" or "Yes"."""

    # The labels of the two states, in Django's order.
    words: ClassVar[tuple[Any, ...]]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.title = _("State")

    def choices(self, changelist: Any) -> Iterator[Any]:
        every, *others = super().choices(changelist)
        yield every
        for choice, word in zip(others, self.words, strict=True):
            yield {**choice, "display": word}


def build_words_filter(django_filter: type[admin.FieldListFilter], *words: Any) -> type[admin.FieldListFilter]:
    """Returns Django's EmptyFieldListFilter or BooleanFieldListFilter with these labels."""
    return type(django_filter.__name__, (WordsFilter, django_filter), {"words": words})


class UserField(forms.ModelChoiceField):
    """Takes the username of a user who may sign in."""

    widget = forms.TextInput(attrs={"class": "vTextField", "autocomplete": "off"})
    default_error_messages: ClassVar[dict[str, Any]] = {
        "invalid_choice": gettext_lazy("Nobody who may sign in has this username.")
    }

    def prepare_value(self, value: Any) -> Any:
        """The initial value is the id of a user, who may be inactive by now."""
        return User.objects.get(pk=value).get_username() if isinstance(value, int) else value


class OwnedAdmin(BaseAdmin):
    """Shows users only their own rows, and superusers all rows."""

    # The lookup path from a row to its owner.
    owner_path = ""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        return rows if request.user.is_superuser else rows.filter(**{self.owner_path: request.user})

    def get_list_display(self, request: HttpRequest) -> Any:
        """Without the owner for those who see their own rows alone."""
        columns = super().get_list_display(request)
        return columns if request.user.is_superuser else [name for name in columns if name != "owner"]

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        """Who has become inactive can stay the owner, but not become it."""
        form: Any = super().get_form(request, obj, change, **options)
        field, owner = form.base_fields.get(self.owner_path), getattr(obj, self.owner_path, None)
        if field and owner and not owner.is_active:
            field.queryset |= User.objects.filter(pk=owner.pk)
            field.help_text = _("%(name)s is inactive.") % {"name": owner}
        return form

    def formfield_for_foreignkey(
        self, db_field: "ForeignKey[Any, Any]", request: HttpRequest, **options: Any
    ) -> forms.ModelChoiceField | None:
        if db_field.name == self.owner_path:
            active = User.objects.filter(is_active=True)
            options |= {"queryset": active, "to_field_name": "username", "form_class": UserField}
        return super().formfield_for_foreignkey(db_field, request, **options)


def build_moment_widget(label: Any) -> forms.SplitDateTimeWidget:
    """Returns the browser's own inputs for a date and a time, each with a name: the common label belongs to neither."""
    # Inputs accept only ISO 8601, in every language.
    widget = forms.SplitDateTimeWidget(
        date_attrs={"type": "date"},
        time_attrs={"type": "time", "step": "1"},
        date_format="%Y-%m-%d",
        time_format="%H:%M:%S",
    )
    for part, name in zip(widget.widgets, (_("date"), _("time")), strict=True):
        part.attrs["aria-label"] = f"{label}: {name}"
    return widget


def is_delete_all(request: HttpRequest) -> bool:
    values = [value for value in request.POST.getlist("select_across") if value not in ("", "0")]
    return get_chosen_action(request) == "delete_selected" and bool(values)


def get_chosen_action(request: HttpRequest) -> str:
    """Each action has a button in the same form, which sends the index of its name. Django reads it like this."""
    names = request.POST.getlist("action")
    try:
        return names[int(request.POST.get("index", 0))]
    except (ValueError, IndexError):
        return names[0] if names else ""

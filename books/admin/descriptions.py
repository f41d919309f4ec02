"""Describes changes for the pages: old and new values, actors, channels and links."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from unicodedata import bidirectional

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from books.book.fields import FIELDS
from books.history.change_pages import ActorNames, Entry
from books.history.loans import LENT, TAKEN_BACK, find_loan
from books.history.records import MERGED_INTO
from books.history.states import DELETIONS
from books.models import Actor, Book, Change, Operation
from books.operations.lifecycle import UNDER_WAY, find_undos
from books.operations.tasks import get_kind, list_unlisted_kinds
from library_site.admin.badges import Tone

# The label of the checkbox does not describe both of its values.
LABELS = {field.name: capfirst(field.verbose_name) for field in Book._meta.concrete_fields} | {
    "available": _("Availability")
}
# The classes of letters from right to left, and of marks that turn the letters after them.
TURNING_CLASSES = {"R", "AL", "RLE", "RLO", "LRO", "RLI"}
AVAILABLE, LENT_STATE = "available", "lent"
STATES = {AVAILABLE: _("available"), LENT_STATE: _("lent")}
ACTOR_LABELS = {"user": _("user"), "app": _("app"), "api_key": _("API key"), "source": _("source")}
TONES: dict[Change.Kind, Tone] = {
    Change.Kind.CREATED: "good",
    Change.Kind.RESTORED: "good",
    Change.Kind.DELETED: "bad",
}
LOAN_TONES: dict[str, Tone] = {LENT: "warning", TAKEN_BACK: "good"}


class Link(NamedTuple):
    text: str
    address: str

    def __str__(self) -> str:
        """Returns HTML, so templates render the object as a link."""
        return format_html('<a href="{}">{}</a>', self.address, self.text)


class ActorName(NamedTuple):
    """A name of who made changes, and the parameter of the page that shows these."""

    text: str
    parameter: str
    value: str

    @property
    def link(self) -> Link:
        return Link(self.text, changes_address(**{self.parameter: self.value}))


class ValueLine(NamedTuple):
    """The value of a field in two states; None for a state in which the book does not exist."""

    label: str
    left: str | None
    right: str | None

    @property
    def differs(self) -> bool:
        return self.left != self.right


class Description(NamedTuple):
    entry: Entry
    kind: str
    book: Link
    names: Sequence[tuple[str, Link]]
    # None if the operation already shows the same.
    channel: Link | None
    operation: Link | None
    # What undid the operation.
    undo: Link | None
    lines: Sequence[ValueLine]
    # The page of the state after the change, None if there is no such page.
    state: str | None
    # The book that this one was merged into.
    merged_into: Link | None

    @property
    def tone(self) -> Tone:
        return LOAN_TONES.get(find_loan(self.entry.after)) or TONES.get(self.entry.kind, "")

    @property
    def has_after(self) -> bool:
        """Whether the book exists after the change. For a merge, `after` contains only the id of the other book."""
        return any(line.right is not None for line in self.lines)


def describe_entries(entries: Sequence[Entry]) -> list[Description]:
    """Takes at most three queries and those of `find_undos`, for any number of entries."""
    titles = find_titles({entry.book_id for entry in entries})
    pks = [entry.operation_id or 0 for entry in entries]
    operations = list_operations().in_bulk({pk for pk in pks if pk})
    undos = find_undos(operations.values())
    return [
        # The operation may expire after its entries were read.
        describe_entry(entry, titles[entry.book_id], operations.get(pk), undos.get(pk))
        for entry, pk in zip(entries, pks, strict=True)
    ]


def list_operations() -> QuerySet[Operation]:
    """Returns all operations with what their names need. What an undo undid may have expired."""
    return Operation.objects.select_related("actor", "undo_of")


def list_shown_operations() -> QuerySet[Operation]:
    """Returns the operations that lists show. Previews and checks of files change no book."""
    return list_operations().exclude(kind__in=list_unlisted_kinds())


def describe_entry(entry: Entry, title: str, operation: Operation | None, undo: Operation | None) -> Description:
    channel = Actor.Channel(entry.actor.channel)
    merged_into = (entry.after or {}).get(MERGED_INTO)
    return Description(
        entry,
        name_kind(find_loan(entry.after) or entry.kind.label),
        Link(title, history_address(entry.book_id)),
        describe_names(entry.actor),
        None if operation and channel in (operation.kind, Actor.Channel.OPERATION) else link_channel(channel),
        link_operation(operation) if operation else None,
        link_undo(undo) if undo else None,
        compare_fields(entry.before, entry.after),
        None if entry.kind in DELETIONS else state_address(entry.book_id, entry.version),
        None if merged_into is None else link_book(merged_into),
    )


def name_kind(label: str) -> str:
    """A librarian adds a book; the API's word is "created"."""
    return gettext("added") if label == Change.Kind.CREATED.label else gettext(label)


def link_book(pk: int) -> Link:
    return Link(gettext("Book %(number)d") % {"number": pk}, history_address(pk))


def find_titles(pks: set[int]) -> dict[int, str]:
    """Returns the titles of books; for a deleted book its last title."""
    titles = dict(Book.objects.filter(pk__in=pks).values_list("pk", "title"))
    deletions = Change.objects.filter(book_id__in=pks - titles.keys(), kind__in=DELETIONS).order_by("version")
    deleted_titles = {
        pk: gettext("%(name)s (deleted)") % {"name": isolate(title)}
        for pk, title in deletions.values_list("book_id", "before__title")
    }
    return {pk: gettext("Book %(number)d") % {"number": pk} for pk in pks} | deleted_titles | titles


def describe_names(actor: ActorNames) -> list[tuple[str, Link]]:
    """Returns the names of the actor; empty for an anonymous change and for the command line."""
    return [(str(ACTOR_LABELS.get(name.parameter, _("Through"))), name.link) for name in list_names(actor)]


def list_names(actor: ActorNames) -> list[ActorName]:
    if actor.channel == Actor.Channel.BULK and not any(actor[1:]):
        return [find_name(actor)]
    return [ActorName(text, name, text) for name in ACTOR_LABELS if (text := getattr(actor, name))]


def find_name(actor: ActorNames) -> ActorName:
    """Returns the first name of the actor, or its channel if it has no name."""
    parameter, name = actor.first_name
    if parameter != "channel":
        return ActorName(name, parameter, name)
    # A request to an open API; "bulk request" would say what was done, and not who did it.
    is_bulk = name == Actor.Channel.BULK
    return ActorName("API" if is_bulk else gettext(Actor.Channel(name).label), parameter, name)


def link_channel(channel: Actor.Channel) -> Link:
    return Link(gettext(channel.label), changes_address(channel=channel.value))


def link_operation(operation: Operation) -> Link:
    return Link(describe_operation(operation), operation_address(operation.pk))


def link_undo(undo: Operation) -> Link:
    is_done = undo.state == Operation.State.DONE
    return Link(gettext("undone") if is_done else gettext("being undone"), operation_address(undo.pk))


def describe_operation(operation: Operation) -> str:
    """Says what was done, with the number of books; without it while it is under way, or if it failed."""
    kind = get_kind(operation.kind)
    if operation.undo_of:
        return gettext("undo: %(what)s") % {"what": describe_operation(operation.undo_of)}
    if is_unnumbered(operation):
        return str(kind.label)
    return format_sentence(kind.get_title(operation), kind.count_books(operation))


def is_unnumbered(operation: Operation) -> bool:
    """Whether its name says only what was wanted: what is done can change, or is not all."""
    return operation.changed is None or operation.state in (*UNDER_WAY, Operation.State.FAILED)


def format_sentence(text: Any, number: int) -> str:
    return str(text % {"number": number, "count": number_format(number, force_grouping=True)})


def label_field(name: str) -> str:
    return str(LABELS.get(name) or capfirst(name))


def compare_fields(left: Mapping[str, Any] | None, right: Mapping[str, Any] | None) -> list[ValueLine]:
    """Returns the fields of either state, in the order of FIELDS."""
    states = [state or {} for state in (left, right)]
    rows = [(name, [format_value(state[name]) if name in state else None for state in states]) for name in FIELDS]
    return [ValueLine(label_field(name), *values) for name, values in rows if values != [None, None]]


def format_value(value: Any) -> str:
    return str(STATES[name_state(value)]) if isinstance(value, bool) else isolate(str(value))


def isolate(text: str) -> str:
    """Keeps a text that is written from right to left from turning the rest of a sentence."""
    if text.isascii() or TURNING_CLASSES.isdisjoint(map(bidirectional, text)):
        return text
    return f"\u2068{text}\u2069"


def name_state(available: bool) -> str:
    return AVAILABLE if available else LENT_STATE


def operation_address(pk: int) -> str:
    return reverse("admin:operation", args=[pk])


def history_address(book_id: int) -> str:
    return reverse("admin:books_book_history", args=[book_id])


def state_address(book_id: int, version: int) -> str:
    return reverse("admin:books_book_state", args=[book_id], query={"version": version})


def changes_address(**filters: Any) -> str:
    return reverse("admin:recent_changes", query=filters)

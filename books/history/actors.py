"""Finds the row of an actor: who changes books, and through which channel.

Each process caches the ids, so a change needs no additional query. Rows are never deleted.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from django.http import HttpRequest
from oauth2_provider.models import Application
from rest_framework.request import Request

from books.models import Actor, Operation
from library_site.db.errors import is_conflict
from library_site.http.versioning import find_version
from oauth.credentials import Credential
from oauth.models import APIKey
from oauth.permissions import find_request_credential
from webhooks.models import Source

# The cache keeps so many actors.
MAX_REMEMBERED_ACTORS = 100_000


class Identity(NamedTuple):
    """What identifies an actor: a channel, and the ids of a user, an app, an API key and a source."""

    channel: str
    user_id: int | None = None
    client_id: str | None = None
    api_key_id: int | None = None
    source_id: int | None = None


class ActorRef(NamedTuple):
    """The id of the actor of a change, and the id of the operation that the change belongs to."""

    id: int
    operation_id: int | None = None


remembered_actors: dict[Identity, ActorRef] = {}
get_request_actor: ContextVar[Callable[[], ActorRef]] = ContextVar(
    "get_request_actor", default=lambda: get_or_create_actor(Actor.Channel.COMMAND)
)


def get_or_create_actor(
    channel: str,
    *,
    credential: Credential | None = None,
    user_id: int | None = None,
    source_id: int | None = None,
) -> ActorRef:
    """Returns the actor for this channel. Without a user, app, key or source, the actor is anonymous.

    Call it before the transaction that changes books; otherwise another first change of this actor waits for that
    transaction.
    """
    if credential:
        identity = Identity(channel, credential.user_id, credential.client_id, credential.key)
    else:
        identity = Identity(channel, user_id, None, None, source_id)
    return remembered_actors.get(identity) or load_actor(identity)


def get_current_actor() -> ActorRef:
    """Returns who sent the request that this thread answers; elsewhere the channel "command line"."""
    return get_request_actor.get()()


@contextmanager
def act_as(get_actor: Callable[[], ActorRef]) -> Iterator[None]:
    """`get_current_actor` returns the result of this function in the block."""
    token = get_request_actor.set(get_actor)
    try:
        yield
    finally:
        get_request_actor.reset(token)


def find_sender(request: HttpRequest | Request) -> ActorRef:
    """Returns who sent a request: through the version of its address, or a page."""
    version = find_version(request.META)
    channel = version.name if version else Actor.Channel.ADMIN
    return get_or_create_actor(channel, credential=find_request_credential(request))


def act_as_sender(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Middleware: what a view writes with the model, such as `serializer.save()`, is a change by this request."""

    def wrapper(request: HttpRequest) -> Any:
        with act_as(partial(find_sender, request)):
            return get_response(request)

    return wrapper


def load_actor(identity: Identity) -> ActorRef:
    pk = find_row(identity)
    actor = ActorRef(add_row_once(identity) if pk is None else pk)
    # If the transaction fails, the row does not exist.
    transaction.on_commit(partial(remember_actor, identity, actor))
    return actor


def find_row(identity: Identity) -> int | None:
    return Actor.objects.filter(identity=format_identity(identity)).values_list("pk", flat=True).first()


def add_row_once(identity: Identity) -> int:
    """Returns the id of the row, also if another transaction inserts it at the same time."""
    try:
        return add_row(identity)
    except OperationalError as error:
        pk = None if connection.in_atomic_block or not is_conflict(error) else find_row(identity)
        if pk is None:
            raise
        return pk


@transaction.atomic
def add_row(identity: Identity) -> int:
    """Returns the id of the row, which another transaction may have inserted. A deleted account is not named."""
    if not lock_user(identity.user_id):
        identity = identity._replace(user_id=None, api_key_id=None)
    Actor.objects.bulk_create([build_actor(identity)], ignore_conflicts=True)
    return Actor.objects.values_list("pk", flat=True).get(identity=format_identity(identity))


def lock_user(pk: int | None) -> bool:
    """Locks the account, so that it is not deleted before its name is written. Returns false if it is deleted."""
    return pk is None or bool(User.objects.select_for_update(no_key=True).filter(pk=pk))


def format_identity(identity: Identity) -> str:
    return " ".join("-" if value is None else str(value) for value in identity)


def remember_actor(identity: Identity, actor: ActorRef) -> None:
    if len(remembered_actors) < MAX_REMEMBERED_ACTORS:
        remembered_actors[identity] = actor


def build_actor(identity: Identity) -> Actor:
    key = APIKey.objects.filter(pk=identity.api_key_id or 0).select_related("authorization__application").first()
    # A key that an app created belongs to that app.
    app = Application.objects.filter(client_id=identity.client_id).first() or (
        key and key.authorization and key.authorization.application
    )
    user = User.objects.filter(pk=identity.user_id or 0).first()
    source = Source.objects.filter(pk=identity.source_id or 0).first()
    return Actor(
        channel=identity.channel,
        user_id=identity.user_id,
        identity=format_identity(identity),
        user_name=user.username if user else "",
        app_name=app.name if app else "",
        api_key_name=key.name if key else "",
        source_name=source.name if source else "",
    )


def record_operation(kind: str, actor: ActorRef, now: datetime) -> ActorRef:
    """Adds an operation that runs within this transaction. Returns the actor for its changes."""
    operation = Operation.objects.create(kind=kind, actor_id=actor.id, created_at=now, finished_at=now)
    return actor._replace(operation_id=operation.pk)

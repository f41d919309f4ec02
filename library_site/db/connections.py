"""Kept connections to a database that went away and came back."""

import select
from typing import Any

from django.core.signals import request_started
from django.db import DEFAULT_DB_ALIAS, connections
from django.dispatch import receiver


@receiver(request_started)
def close_lost_connection(**_: Any) -> None:
    """Closes one that PostgreSQL has closed, lest a request meet it; asking the server would cost a round trip."""
    kept = connections[DEFAULT_DB_ALIAS]
    idle = kept.vendor == "postgresql" and kept.connection is not None and not kept.in_atomic_block
    if idle and is_readable(kept.connection.fileno()):
        kept.close()


def is_readable(socket: int) -> bool:
    """Between two statements a server has nothing to say but that it goes."""
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))

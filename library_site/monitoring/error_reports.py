"""Reports errors to Sentry, or to a service that speaks its protocol. It needs sentry-sdk (requirements/optional.txt).

Each log line at ERROR is a report. It has the place in the code and the id of the request, and nothing that a client
sent: no request, no values of variables, and no messages of exceptions, because these can quote rows.
"""

import logging
from multiprocessing.util import Finalize
from typing import Any

import sentry_sdk
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from sentry_sdk.integrations.excepthook import ExcepthookIntegration
from sentry_sdk.integrations.logging import LoggingIntegration
from sentry_sdk.types import Event, Hint
from sentry_sdk.utils import BadDsn

from library_site.http.request_log import current_request_id

# Seconds that a process waits at its end for its last reports.
FLUSH_TIMEOUT = 2
# Everything else is dropped.
EVENT_FIELDS = ("event_id", "timestamp", "level", "logger", "platform", "release", "server_name", "environment", "sdk")
EXCEPTION_FIELDS = ("type", "module", "mechanism", "stacktrace")


def start_error_reports(dsn: str, release: str) -> None:
    """Raises ImproperlyConfigured, with a message that does not show the DSN."""
    try:
        sentry_sdk.init(
            dsn,
            release=release,
            # Other integrations would record requests, statements and variables.
            default_integrations=False,
            auto_enabling_integrations=False,
            integrations=[LoggingIntegration(level=None, event_level=logging.ERROR), ExcepthookIntegration()],
            before_send=clean_event,
            include_local_variables=False,
            max_request_body_size="never",
            max_breadcrumbs=0,
            auto_session_tracking=False,
            send_client_reports=False,
        )
    except BadDsn:
        raise ImproperlyConfigured("SENTRY_DSN takes an address such as https://key@errors.example/1.") from None
    # The server ends its processes without `atexit`.
    Finalize(None, sentry_sdk.flush, args=[FLUSH_TIMEOUT], exitpriority=1)


def clean_event(event: Event, hint: Hint) -> Event:
    """Keeps only the fields that contain no data of a request."""
    fields: dict[str, Any] = {**event}
    cleaned: Any = {name: fields[name] for name in EVENT_FIELDS if name in fields}
    cleaned["tags"] = {"request_id": current_request_id.get(), "process": settings.LIBRARY_PROCESS}
    cleaned["logentry"] = {"message": choose_message(fields)}
    if exceptions := fields.get("exception", {}).get("values"):
        cleaned["exception"] = {
            "values": [{name: error[name] for name in EXCEPTION_FIELDS if name in error} for error in exceptions]
        }
    kept: Event = cleaned
    return kept


def choose_message(event: dict[str, Any]) -> str:
    """Returns the message of our own and Django's lines without arguments. Other libraries may format any data."""
    logger = str(event.get("logger", ""))
    is_known = logger.partition(".")[0] in {*settings.OWN_APPS, "django"}
    message = event.get("logentry", {}).get("message", "")
    return str(message) if is_known else logger

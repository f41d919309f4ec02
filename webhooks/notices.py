"""Mail to people about their endpoints."""

import logging
from smtplib import SMTPException

from django.core.mail import send_mail

from webhooks.models import Endpoint

log = logging.getLogger(__name__)
SUBJECT = "Your webhook is disabled"
WORDS = """Nothing more is sent to
{url}
{reason}

When it can be reached again, enable it and have the events sent that it missed:
they are kept for 30 days.
"""


def tell_disabled(endpoint: Endpoint) -> None:
    """What mail fails with is logged: the admin tells of it, too."""
    log.warning("Endpoint %s is disabled. %s", endpoint.pk, endpoint.reason)
    if endpoint.owner and endpoint.owner.email:
        try:
            send_mail(SUBJECT, WORDS.format(url=endpoint.url, reason=endpoint.reason), None, [endpoint.owner.email])
        except (SMTPException, OSError, ValueError) as error:
            log.error("The owner of endpoint %s could not be told: %s", endpoint.pk, type(error).__name__)  # noqa: TRY400

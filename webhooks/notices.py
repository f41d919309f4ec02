"""Mail to people about their endpoints."""

import logging
from smtplib import SMTPException

from django.core.mail import send_mail

from webhooks.models import KEPT_FOR, Endpoint

log = logging.getLogger(__name__)
SUBJECT = "Your webhook is disabled"
WORDS = """Nothing more is sent to
{url}
{reason}

When it can be reached again, enable it and have the events sent that it missed:
they are kept for {days} days.
"""


def tell_disabled(endpoint: Endpoint) -> None:
    """Mail that fails is only logged, since the admin shows the reason too."""
    log.warning("Endpoint %s is disabled. %s", endpoint.pk, endpoint.reason)
    if endpoint.owner and endpoint.owner.email:
        words = WORDS.format(url=endpoint.url, reason=endpoint.reason, days=KEPT_FOR.days)
        try:
            send_mail(SUBJECT, words, None, [endpoint.owner.email])
        except (SMTPException, OSError, ValueError) as error:
            log.error("The owner of endpoint %s could not be told: %s", endpoint.pk, type(error).__name__)  # noqa: TRY400

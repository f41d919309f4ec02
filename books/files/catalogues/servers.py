"""Queries the servers of SRU_SERVERS. Requests have limits of time and size, and follow no redirects."""

import asyncio
import logging
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext_noop as _

from books.book.isbn import to_isbn10
from books.files.catalogues.sru import CatalogueFailed, read_response
from library_site.outbound.addresses import ForbiddenAddress
from library_site.outbound.client import Client, ResponseTooLong

log = logging.getLogger(__name__)

# About ten records of a national library.
MAX_ANSWER_BYTES = 2**18
# The headers, and the body with any transfer encoding.
MAX_RESPONSE_TRAFFIC = 2 * MAX_ANSWER_BYTES
HEADERS = {"Accept": "application/sru+xml, application/xml, text/xml, */*;q=0.1"}


# The host of a catalogue and the values of its entry, and why those asked before it returned none.
Found = tuple[tuple[str, dict[str, Any]] | None, list[str]]


async def ask_servers(isbn13: str, seconds: float) -> Found:
    """Returns within so many seconds."""
    allow_private: bool = settings.SRU_ALLOW_PRIVATE
    async with aclosing(Client(seconds, MAX_RESPONSE_TRAFFIC, allow_private, HEADERS)) as client:
        return await ask_in_turn(client, isbn13, seconds)


async def ask_in_turn(client: Client, isbn13: str, seconds: float) -> Found:
    """Queries one server after the other. A slow server leaves time for the others."""
    timer, templates = asyncio.get_running_loop().time, settings.SRU_SERVERS
    deadline, problems = timer() + seconds, []
    for index, template in enumerate(templates):
        share = (deadline - timer()) / (len(templates) - index)
        # An old record has an ISBN of 10 digits, and not every catalogue converts it.
        url = template.replace("{isbn}", isbn13).replace("{isbn10}", to_isbn10(isbn13))
        host = urlsplit(url).hostname
        try:
            values = read_response(await fetch(client, url, share), isbn13)
        except CatalogueFailed as failure:
            reason = " ".join([str(failure), *([repr(failure.__cause__)] if failure.__cause__ else [])])
            log.warning("The catalogue at %s says nothing. %s", host, reason)
            problems.append(f"{host}: {failure.describe()}")
        else:
            if values:
                return (str(host), values), problems
    return None, problems


async def fetch(client: Client, url: str, seconds: float) -> bytes:
    """Raises CatalogueFailed."""
    try:
        async with asyncio.timeout(seconds):
            response = await client.request("GET", url)
    # A server can cause any error, and none of them is a fault of this program.
    except Exception as error:
        raise CatalogueFailed(describe_catalogue_error(error)) from error
    if 300 <= response.status < 400:
        # A redirect could point to an internal address.
        raise CatalogueFailed(_("It refers to another address, which is not followed."))
    if response.status != 200:
        raise CatalogueFailed(_("It answered with the status %(status)d."), status=response.status)
    if failure := response.error or (ResponseTooLong() if len(response.body) > MAX_ANSWER_BYTES else None):
        raise CatalogueFailed(describe_catalogue_error(failure)) from failure
    return bytes(response.body)


def describe_catalogue_error(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return _("It did not answer in time.")
    if isinstance(error, ForbiddenAddress):
        return _("Its address is not a public one.")
    if isinstance(error, ResponseTooLong):
        return _("Its answer is too large.")
    return _("It cannot be reached, or the connection broke.")

"""REST framework's hooks for versions, parsers and renderers."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from rest_framework.exceptions import APIException
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.versioning import NamespaceVersioning

from library_site.api.shipped import remember
from library_site.http.api_errors import APIError
from library_site.http.errors import UnsupportedVersion
from library_site.http.request_log import VERSION_KEY
from library_site.http.transfer.bodies import get_body_limit


class PayloadTooLarge(APIException):
    """RFC 9110, 15.5.14."""

    status_code = 413
    default_code = "payload_too_large"


class ContentCodingRefused(APIError):
    """The body has a content coding (RFC 9110, 8.4 and 15.5.16)."""

    status_code = 415
    default_detail = "Send the body as it is, without Content-Encoding"
    headers: ClassVar = {"Accept-Encoding": "identity"}


@remember
class ServedVersioning(NamespaceVersioning):
    """Raises what `choose_version` found wrong here: after the 405 of the method, and before the credentials."""

    def determine_version(self, request: Request, *arguments: Any, **options: Any) -> str:
        choice = request.META.get(VERSION_KEY)
        if choice and choice.refusal:
            raise UnsupportedVersion(choice.refusal)
        return super().determine_version(request, *arguments, **options)


@remember
class JSONNegotiation(DefaultContentNegotiation):
    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        """Uses the first parser for a body without a Content-Type (RFC 9110, 8.3).

        Raises PayloadTooLarge, ContentCodingRefused.
        """
        limit = get_body_limit(request.META)
        if int(request.META.get("CONTENT_LENGTH") or 0) > limit:
            raise PayloadTooLarge(f"The body is over {limit} bytes.")
        if request.META.get("HTTP_CONTENT_ENCODING", "identity").strip().lower() != "identity":
            raise ContentCodingRefused
        if not request.content_type:
            return next(iter(parsers))
        media_type = request.content_type.partition(";")[0].strip().lower()
        return next((parser for parser in parsers if fnmatchcase(media_type, str(parser.media_type))), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Chooses only where a view has several renderers: ours have one, whatever Accept and `?format=` say."""
        first, *others = renderers
        if others or format_suffix:
            chosen: tuple[BaseRenderer, str] = super().select_renderer(request, [first, *others], format_suffix)
            return chosen
        return first, first.media_type

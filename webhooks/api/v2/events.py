"""The stream of events in version 2, which clients pull."""

import msgspec
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from library_site.api.query import (
    FieldErrors,
    build_link,
    check_parameters,
    read_cursor,
    read_limit,
    read_list,
)
from library_site.api.responses import NO_STORE
from oauth.permissions import HasCredential
from webhooks import stream
from webhooks.api.v2.documents import document_stream
from webhooks.api.v2.endpoints import WebhookViewSet
from webhooks.models import Event
from webhooks.permissions import EVENT_ACTIONS
from webhooks.registry import EVENT_KINDS
from webhooks.stream import StreamCursor


class EventViewSet(WebhookViewSet):
    # The stream is nobody's own.
    permission_classes = [HasCredential]
    required_permissions = EVENT_ACTIONS
    queryset = Event.objects.order_by("transaction", "pk")

    @document_stream
    def follow(self, request: Request) -> HttpResponse:
        """Raises CursorGone."""
        check_parameters(request, ["after", "limit", "kinds"], ["kinds"])
        limit, limit_errors = read_limit(request)
        kinds, kinds_errors = read_kinds(request)
        after, cursor_errors = read_cursor(request, "after", StreamCursor.decode, "It is no cursor of this stream.")
        if errors := cursor_errors | limit_errors | kinds_errors:
            raise ValidationError(errors)
        page = stream.read_event_page(after, kinds, limit, now=timezone.now())
        cursor = page.end.encode()
        next_link = build_link(request, after=cursor) if page.has_more else None
        results = [msgspec.Raw(body) for body in page.bodies]
        return Response({"results": results, "next": next_link, "cursor": cursor}, headers=NO_STORE)


def read_kinds(request: Request) -> tuple[list[str], FieldErrors]:
    kinds = read_list(request, "kinds")
    if kinds is None:
        return list(EVENT_KINDS), {}
    if set(kinds) <= EVENT_KINDS.keys():
        return kinds, {}
    return [], {"kinds": [ErrorDetail(f"It takes, with commas between them, {', '.join(EVENT_KINDS)}.", "enum")]}

"""The stream of events, to be pulled."""

import msgspec
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request

from books.api.pagination import KeysetPagination
from books.read_model import json_response
from library_site.api.query import Problems, bounded, following, require_known
from oauth.server.error_responses import NOT_STORED
from webhooks import stream
from webhooks.api.v2.endpoints import WebhookViewSet
from webhooks.api.v2.schema import events_document
from webhooks.models import Event
from webhooks.registry import KINDS
from webhooks.stream import NoCursor, Place

PARAMETERS = ("after", "limit", "kinds")


class Events(WebhookViewSet):
    queryset = Event.objects.order_by("transaction", "pk")
    body_serializers = {}

    @events_document
    def follow(self, request: Request) -> HttpResponse:
        """Raises CursorTooOld."""
        require_known(request, PARAMETERS)
        limit, wrong_limit = bounded(request, "limit", KeysetPagination.default_limit, 1, KeysetPagination.max_limit)
        kinds, wrong_kinds = chosen_kinds(request)
        after, wrong_cursor = chosen_place(request)
        if problems := wrong_cursor | wrong_limit | wrong_kinds:
            raise ValidationError(problems)
        page = stream.page(after, kinds, limit, now=timezone.now())
        cursor = page.end.text()
        later = following(request, after=cursor) if page.more else None
        results = [msgspec.Raw(body) for body in page.bodies]
        return json_response({"results": results, "next": later, "cursor": cursor}, headers=NOT_STORED)


def chosen_place(request: Request) -> tuple[Place | None, Problems]:
    if "after" not in request.query_params:
        return None, {}
    try:
        return stream.place(request.query_params["after"]), {}
    except NoCursor:
        return None, {"after": [ErrorDetail("It is no cursor of this stream.", "cursor")]}


def chosen_kinds(request: Request) -> tuple[list[str], Problems]:
    if "kinds" not in request.query_params:
        return list(KINDS), {}
    kinds = request.query_params["kinds"].split(",")
    if set(kinds) <= KINDS.keys():
        return kinds, {}
    return [], {"kinds": [ErrorDetail(f"It takes, with commas between them, {', '.join(KINDS)}.", "enum")]}

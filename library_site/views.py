"""The site's own answers: the root message and the documentation."""

from typing import Any

from django.http import HttpResponse, JsonResponse
from drf_spectacular.renderers import OpenApiJsonRenderer2
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.views import APIView

from books.documents import message

WELCOME = {"message": "Welcome to the Library API. See /docs for its documentation."}


class Root(APIView):
    throttle_classes = []

    @extend_schema(
        operation_id="root",
        summary="Find the documentation",
        tags=["Library"],
        responses=message("A pointer to /docs.", WELCOME["message"]),
    )
    def get(self, request: Request) -> JsonResponse:
        return JsonResponse(WELCOME)


class Document(SpectacularAPIView):
    renderer_classes = [OpenApiJsonRenderer2]
    throttle_classes = []


class Docs(SpectacularSwaggerSplitView):
    url_name = "openapi"
    throttle_classes = []

    def options(self, request: Request, *arguments: Any, **options: Any) -> HttpResponse:
        """The stock answer would be the page without its assets."""
        return HttpResponse(status=204)

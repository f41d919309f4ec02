"""The views of the root address and of the documentation."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.http import HttpResponse, JsonResponse
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from library_site.api.documents.openapi import get_document
from library_site.api.documents.schema import document_message
from library_site.http.caching import API_CACHE_CONTROL

WELCOME_BODY = {"message": "Welcome to the Library API. See /docs for its documentation."}


# Answers everyone, without a limit. A docstring would be the description of each view in the documents.
class OpenView(APIView):
    versioning_class = None
    throttle_classes = []
    authentication_classes = []
    permission_classes = []


class RootView(OpenView):
    @extend_schema(
        operation_id="root",
        summary="Find the documentation",
        tags=["Library"],
        responses=document_message("A pointer to /docs.", WELCOME_BODY["message"]),
    )
    def get(self, request: Request) -> JsonResponse:
        return JsonResponse(WELCOME_BODY)


class DocumentView(OpenView):
    """The OpenAPI document of these versions. With `webhooks=false` it has no webhooks, which some generators turn into
    code that does not compile.
    """

    schema = None
    versions: Sequence[int] = ()

    def get(self, request: Request) -> JsonResponse:
        document = get_document(tuple(self.versions))
        has_webhooks = request.query_params.get("webhooks") != "false"
        parts = {key: part for key, part in document.items() if has_webhooks or key != "webhooks"}
        return JsonResponse(parts, headers={"Cache-Control": API_CACHE_CONTROL})


class DocsView(OpenView, SpectacularSwaggerSplitView):
    """Swagger UI of the document of the version with this number, or of all versions, with links to the others."""

    schema = None
    url_name = "openapi"
    number: int | None = None
    versions: Sequence[int] = ()

    def get(self, request: Request, *arguments: Any, **options: Any) -> Response:
        if self.number:
            self.url_name = f"openapi-v{self.number}"
            self.title = f"{self.title}, version {self.number}"
        response: Response = super().get(request, *arguments, **options)  # type: ignore[no-untyped-call]
        response.data |= {
            "number": self.number,
            "versions": self.versions,
            "description": settings.SPECTACULAR_SETTINGS["DESCRIPTION"],
            "document_url": reverse(self.url_name),
        }
        # The Authorize button opens a window at PUBLIC_URL, which can send messages only to a page of that origin.
        origin = request.build_absolute_uri("/").removesuffix("/")
        response.data["home"] = "" if origin == settings.PUBLIC_URL else settings.PUBLIC_URL
        return response

    def options(self, request: Request, *arguments: Any, **options: Any) -> HttpResponse:
        """Replaces Django's response, which would be the page without its assets."""
        return HttpResponse(status=204)

"""Describes operations in the OpenAPI documents. Defaults come from the viewset of the operation.

A viewset with a `noun` gets operation ids, summaries, responses and errors for the actions of a ModelViewSet.
`extend_schema` adds parameters to these defaults, and overrides responses.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from library_site.api.conditions import PreconditionFailed
from library_site.api.documents.errors import (
    HEADERS_BY_STATUS,
    INVALID_LIMIT,
    ErrorDocument,
    Operation,
    build_response,
    document_error,
    iter_common_errors,
    select_error_format,
)
from library_site.api.documents.schema import PAGE_LINK, document_answer, request_header, response_header
from library_site.api.pagination import CursorPagination
from library_site.http import versions
from library_site.http.api_errors import ErrorContent


class Wording(NamedTuple):
    """The summary of an action and its successful response. The operation id begins with the summary's first word."""

    summary: str
    status: int
    response: str


WORDINGS = {
    "list": Wording("List {nouns}", 200, "The {nouns}."),
    "create": Wording("Create {a} {noun}", 201, "The new {noun}."),
    "retrieve": Wording("Read {a} {noun}", 200, "The {noun}."),
    "update": Wording("Replace {a} {noun}", 200, "The {noun} after the change."),
    "partial_update": Wording("Change {a} {noun}", 200, "The {noun} after the change."),
    "destroy": Wording("Delete {a} {noun}", 204, "The {noun} is gone."),
}
# What stands before the names of resources.
VERSION_PREFIX = rf"^{versions.API_ROOT}(/v\d+)?/"
SERIALIZER_NAMES = ("get_serializer", "get_serializer_class", "serializer_class")
NOT_MODIFIED = OpenApiResponse(description="The state is one that `If-None-Match` names.")


class OperationSchema(AutoSchema):
    """REST framework's DEFAULT_SCHEMA_CLASS."""

    view: Any

    def get_operation(self, path: str, path_regex: str, path_prefix: str, *arguments: Any) -> Operation | None:
        is_versioned = path.startswith(f"{versions.API_ROOT}/")
        prefix = VERSION_PREFIX if is_versioned else path_prefix
        operation: Operation | None = super().get_operation(path, path_regex, prefix, *arguments)
        if operation and is_versioned:
            responses = operation["responses"]
            is_declared = any(status.startswith("2") for status in responses)
            for status, document in self.build_responses().items():
                if str(status) not in responses and not (is_declared and status < 300):
                    responses[str(status)] = self._get_response_for_code(document, str(status))
            action = getattr(self.view, "action", self.method.lower())
            permissions = getattr(self.view, "required_permissions", {}).get(action, ())
            for error in [*self.get_action_errors(), *iter_common_errors(operation, permissions)]:
                # A response that the operation declares overrides the default.
                status_text = str(select_error_format(self.path)(error.content, "")[0])
                if status_text not in responses:
                    responses[status_text] = self._get_response_for_code(error, status_text)
        return operation

    @property
    def wording(self) -> Wording | None:
        """None if the action is not an action of ModelViewSet, or the viewset has no noun."""
        noun = getattr(self.view, "noun", "")
        wording = WORDINGS.get(getattr(self.view, "action", ""))
        if not noun or not wording:
            return None
        words = {"noun": noun, "nouns": self.view.get_plural(), "a": "an" if noun[0] in "AEIOaeio" else "a"}
        return wording._replace(summary=wording.summary.format(**words), response=wording.response.format(**words))

    def get_operation_id(self) -> str:
        if not self.wording:
            return str(super().get_operation_id())
        verb = self.wording.summary.split()[0]
        noun = self.view.get_plural() if self.view.action == "list" else self.view.noun
        return f"{verb} {noun}".lower().replace(" ", "_")

    def get_summary(self) -> str | None:
        return self.wording.summary if self.wording else str(self.view.get_view_name())

    def get_tags(self) -> list[str]:
        plural = self.view.get_plural() if getattr(self.view, "noun", "") else ""
        tag = getattr(self.view, "tag", "") or plural[:1].upper() + plural[1:]
        return [tag] if tag else [name.replace("-", " ").capitalize() for name in super().get_tags()]

    def get_request_serializer(self) -> Any:
        if not hasattr(self.view, "takes_body"):
            return super().get_request_serializer()
        return self.view.get_serializer_class() if self.view.takes_body() else None

    def _get_serializer(self) -> Any:
        """A plain APIView does not tell what its bodies are."""
        has_serializer = any(hasattr(self.view, name) for name in SERIALIZER_NAMES)
        return super()._get_serializer() if has_serializer else OpenApiTypes.ANY  # type: ignore[no-untyped-call]

    def get_response_serializers(self) -> Any:
        return self.build_responses() or super().get_response_serializers()

    def build_responses(self) -> dict[int, Any]:
        """Returns the responses of an action of ModelViewSet, without the common errors."""
        wording, view = self.wording, self.view
        if not wording:
            return {}
        responses: dict[int, Any] = {wording.status: self.build_success(wording)}
        if view.action == "list" and view.pagination_class:
            responses |= INVALID_LIMIT
        if view.has_conditions and "{" in self.path:
            if view.action == "retrieve":
                responses[304] = NOT_MODIFIED
            responses |= document_state(view.noun)
        return responses

    def build_success(self, wording: Wording) -> OpenApiResponse:
        if wording.status == 204:
            return OpenApiResponse(description=wording.response)
        serializer = self.view.get_response_serializer_class()
        if self.view.example is None:
            return OpenApiResponse(serializer, wording.response)
        return document_answer(serializer, wording.response, self.view.example)

    def _is_list_view(self, serializer: Any = None) -> bool:
        """drf-spectacular would need a serializer of the response to find out, and a viewset may have none."""
        if serializer is None and self.wording:
            return bool(self.view.action == "list")
        return bool(super()._is_list_view(serializer))

    def get_action_errors(self) -> Iterator[ErrorDocument]:
        """Returns the errors that the action declares, and 404 if the path has an id."""
        view = self.view
        yield from getattr(getattr(view, str(getattr(view, "action", "")), None), "error_documents", ())
        if getattr(view, "noun", "") and "{" in self.path:
            yield from (
                document_error(view.not_found).values()
                if view.not_found
                else [ErrorDocument(f"There is no such {view.noun}.", ErrorContent(404, view.get_not_found_message()))]
            )

    def get_override_parameters(self) -> list[Any]:
        view = self.view
        parameters = [one for one in getattr(view, "path_parameters", ()) if f"{{{one.name}}}" in self.path]
        if self.wording and view.has_conditions:
            parameters += list(iter_condition_headers(view.action, view.noun))
        if self.wording and view.action == "create":
            parameters.append(response_header("Location", f"The address of the new {view.noun}.", 201))
        if self.wording and view.action == "list" and issubclass(view.pagination_class or object, CursorPagination):
            parameters.append(PAGE_LINK)
        return [*super().get_override_parameters(), *parameters]

    def get_paginated_name(self, serializer_name: str) -> str:
        return f"{serializer_name}Page"

    def _get_response_for_code(self, serializer: Any, status_code: str, *arguments: Any, **options: Any) -> Any:
        if isinstance(serializer, ErrorDocument):
            serializer = build_response(serializer, select_error_format(self.path))
        return super()._get_response_for_code(  # type: ignore[no-untyped-call]
            serializer, status_code, *arguments, **options
        )

    def _get_response_headers_for_code(self, status_code: str, *arguments: Any, **options: Any) -> Any:
        headers = super()._get_response_headers_for_code(status_code, *arguments, **options)
        return headers | HEADERS_BY_STATUS.get(status_code, {})


def document_state(noun: str, description: str = "") -> dict[int, ErrorDocument]:
    description = description or f"The {noun} is in another state than the request asks for."
    error = PreconditionFailed(noun)
    return {error.status_code: ErrorDocument(description, ErrorContent(error.status_code, str(error.detail)))}


def iter_condition_headers(action: str, noun: str) -> Iterator[OpenApiParameter]:
    if action == "list":
        return
    statuses = {"create": [201], "retrieve": [200, 304], "destroy": []}.get(action, [200])
    if statuses:
        yield response_header("ETag", f"The state of the {noun}, for `If-Match` and `If-None-Match`.", *statuses)
    if action == "create":
        return
    yield request_header("If-Match", f"Go on only if the {noun} is in one of these states.")
    effect = "Answer 304 if the {noun} is in one" if action == "retrieve" else "Go on only if the {noun} is in none"
    yield request_header("If-None-Match", f"{effect.format(noun=noun)} of these states.")

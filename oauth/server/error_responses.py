"""How the authorization server refuses, and what it refuses unread."""

from django.http import JsonResponse, QueryDict

from library_site.api.responses import NO_STORE


def error_response(status: int, error: str, description: str | None = None, **headers: str) -> JsonResponse:
    """An error in the form of RFC 6749, 5.2."""
    body = {"error": error, **({"error_description": description} if description else {})}
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return JsonResponse(body, status=status, headers={**NO_STORE, **given})


def malformed_reason(parameters: QueryDict) -> str:
    """What is wrong with a query or a form as a whole (RFC 6749, 3.1 and 3.2); nothing if all is well."""
    for name, values in parameters.lists():
        if len(values) > 1:
            return "A parameter is there twice."
        if "\0" in name + values[0]:
            return "A parameter has a NUL character."
    return ""

"""The authorization server's error responses, and its check for malformed parameters."""

from django.http import JsonResponse, QueryDict

from library_site.api.responses import NO_STORE


def error_response(status: int, error: str, description: str | None = None, **headers: str) -> JsonResponse:
    """An error in the form of RFC 6749, 5.2."""
    body = {"error": error, **({"error_description": description} if description else {})}
    extra_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return JsonResponse(body, status=status, headers={**NO_STORE, **extra_headers})


def describe_malformed(parameters: QueryDict) -> str:
    """Returns why a query or form is malformed (RFC 6749, 3.1 and 3.2), or "" if it is valid."""
    for name, values in parameters.lists():
        if len(values) > 1:
            return "A parameter is there twice."
        if "\0" in name + values[0]:
            return "A parameter has a NUL character."
    return ""

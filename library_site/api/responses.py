"""Makes JSON responses."""

from collections.abc import Mapping
from typing import Any

import msgspec
from django.http import HttpResponse
from rest_framework.utils.encoders import JSONEncoder

# RFC 6749, 5.1.
NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
# Retry-After for work that a worker does soon: it polls each second (RFC 9110, 10.2.3).
RETRY_SOON = {"Retry-After": "1"}


def encode_other(value: Any) -> Any:
    """Encodes what msgspec cannot, as REST framework does: lazy texts, querysets, subclasses of str such as links."""
    return str.__str__(value) if isinstance(value, str) else JSONEncoder().default(value)


encode_json = msgspec.json.Encoder(enc_hook=encode_other).encode


def make_empty_response(status: int = 204, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """Returns a response without a body and without a Content-Type."""
    response = HttpResponse(status=status, headers=headers)
    del response.headers["Content-Type"]
    return response

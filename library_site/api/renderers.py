"""Encodes responses of REST framework as JSON."""

from collections.abc import Mapping
from typing import Any

from rest_framework.renderers import BaseRenderer

from library_site.api.responses import encode_json


class JSONRenderer(BaseRenderer):
    """REST framework's own takes seven times as long for a page, and encodes no structs."""

    media_type = "application/json"
    format = "json"
    charset = None
    render_style = "binary"

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        """A view, its request and its response refer to each other: what they keep waits for the garbage collector."""
        if renderer_context and (response := renderer_context.get("response")):
            response.data = None
        return b"" if data is None else encode_json(data)

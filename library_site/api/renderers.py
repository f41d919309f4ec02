"""Renders responses of REST framework as JSON."""

from collections.abc import Mapping
from typing import Any

from rest_framework.renderers import BaseRenderer

from library_site.api.responses import encode_json
from library_site.api.shipped import remember


@remember
class JSONRenderer(BaseRenderer):
    """REST framework's JSONRenderer takes seven times as long for a page, and cannot encode structs."""

    media_type = "application/json"
    format = "json"
    charset = None
    render_style = "binary"

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        return b"" if data is None else encode_json(data)

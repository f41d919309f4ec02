"""The page after the sign-in: the parameter `next`."""

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import resolve_url
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme


def get_next_page(request: HttpRequest) -> str:
    """Returns only URLs of the library: a link could contain any URL (open redirect)."""
    url = request.GET.get("next", "")
    is_safe = url_has_allowed_host_and_scheme(url, {request.get_host()}, require_https=request.is_secure())
    return url if is_safe else get_home(request.user)


def get_home(user: Any) -> str:
    """The pages of the library for those who see them."""
    return resolve_url("admin:index" if user.is_staff else settings.LOGIN_REDIRECT_URL)


def redirect_with_next(page: str, next_page: str) -> HttpResponse:
    query = urlencode({"next": next_page}, safe="/") if next_page else ""
    return HttpResponseRedirect(f"{reverse(page)}{'?' if query else ''}{query}")

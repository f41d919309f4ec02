"""The pages on which people choose passwords."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from oauth import lockout


@admin.site.admin_view
def change_password(request: HttpRequest) -> HttpResponse:
    """The admin's page. Its old password is counted as one at the sign-in, or a stolen session could guess it."""
    if request.method != "POST":
        return admin.site.password_change(request)
    username = request.user.get_username()
    if not lockout.count_password_attempt(request, username):
        return lockout.render_locked(request)
    response = admin.site.password_change(request)
    context = isinstance(response, TemplateResponse) and response.context_data
    if not context or "old_password" not in context["form"].errors:
        lockout.clear_attempts(request, username)
    return response

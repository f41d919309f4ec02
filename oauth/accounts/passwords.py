"""The pages to choose a password: with the link from a mail, or when signed in."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import views
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache

from library_site.http.callers import get_client_ip
from oauth import api_keys
from oauth.accounts import mails
from oauth.accounts.forms import NewPasswordForm, PasswordChangeForm, ResetRequestForm
from oauth.models import APIKey
from oauth.passwords import lockout

LINK_KEY = "password_link_user"


@method_decorator(never_cache, name="dispatch")
class ResetRequestView(views.PasswordResetView):
    """Queues a mail. The response is the same whether a user has the address or not."""

    template_name = "accounts/password_reset.html"
    form_class = ResetRequestForm
    success_url = reverse_lazy("accounts:password-reset-sent")

    def form_valid(self, form: Any) -> HttpResponse:
        try:
            mails.request_reset(form.cleaned_data["email"], get_client_ip(self.request), timezone.now())
        except mails.TooManyMails:
            seconds = mails.MAIL_PERIOD.total_seconds()
            return lockout.render_retry_page(self.request, "accounts/too_many_mails.html", seconds)
        return HttpResponseRedirect(str(self.success_url))


class NewPasswordView(views.PasswordResetConfirmView):
    """Sets a password through a link from a mail. It does not sign the user in, so the second factor stays required.

    Django puts the token into the path, which the access log contains. Here it is in the query, then in the session.
    """

    template_name = "accounts/new_password.html"
    form_class = NewPasswordForm
    user: Any
    success_url = reverse_lazy("accounts:password-set")

    def dispatch(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponseBase:
        if "token" not in request.GET:
            uid = request.session.get(LINK_KEY, "")
            return super().dispatch(request, uidb64=uid, token=self.reset_url_token)
        uid = request.GET.get("uid", "")
        response = super().dispatch(request, uidb64=uid, token=request.GET["token"])
        if isinstance(response, HttpResponseRedirect):
            request.session[LINK_KEY] = uid
        return response

    def get_user(self, uidb64: str) -> Any:
        user = super().get_user(uidb64)
        return user if user and user.is_active else None

    def form_valid(self, form: Any) -> HttpResponse:
        """Ends sessions and the access of apps, as every password change does. Clears the lockout at all addresses."""
        with transaction.atomic():
            response: HttpResponse = super().form_valid(form)
            if form.cleaned_data.get("revoke_keys"):
                api_keys.revoke_keys(APIKey.objects.filter(owner=self.user).order_by("pk"), timezone.now())
            lockout.clear_all_attempts(self.user.get_username())
        return response


@method_decorator(never_cache, name="dispatch")
class PasswordChangeView(views.PasswordChangeView):
    """Failures count toward the lockout: otherwise a stolen session could guess the password."""

    template_name = "accounts/password_change.html"
    form_class = PasswordChangeForm
    success_url = reverse_lazy("accounts:profile")

    def post(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        username = request.user.get_username()
        if not lockout.count_password_attempt(request, username):
            return lockout.render_locked(request)
        form = self.get_form()
        is_valid = form.is_valid()
        if "old_password" not in form.errors:
            lockout.clear_attempts(request, username)
        return self.form_valid(form) if is_valid else self.form_invalid(form)

    def form_valid(self, form: Any) -> HttpResponse:
        messages.success(self.request, gettext("Your password is changed. You are signed out everywhere else."))
        return super().form_valid(form)

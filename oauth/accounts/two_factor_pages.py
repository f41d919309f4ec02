"""The page to turn two-factor sign-in on and off, and to get recovery codes."""

import segno
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from library_site import encryption
from oauth.accounts import sessions, totp
from oauth.accounts.forms import CodeForm, SetUpForm
from oauth.accounts.next_page import get_next_page
from oauth.models import SecondFactor
from oauth.passwords import lockout

# Session key of the secret during the setup, encrypted as in the table of second factors.
SETUP_KEY = "second_factor_setup"


@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def manage_two_factor(request: HttpRequest) -> HttpResponse:
    """For signed-in users, and for users who must turn two-factor sign-in on before they can sign in."""
    if isinstance(request.user, User):
        factor = totp.find_factor(request.user)
        return change_factor(request, request.user, factor) if factor else set_up_factor(request, request.user)
    pending_user = sessions.find_pending_user(request)
    if pending_user is None or totp.find_factor(pending_user):
        return redirect_to_login(request.get_full_path())
    return set_up_factor(request, pending_user)


def set_up_factor(request: HttpRequest, user: User) -> HttpResponse:
    secret, is_signed_in = get_setup_secret(request), request.user.is_authenticated
    is_posted = request.method == "POST"
    if is_posted and is_signed_in and not lockout.count_password_attempt(request, user.get_username()):
        return lockout.render_locked(request)
    form = SetUpForm(user, secret, is_signed_in, request.POST if is_posted else None)
    if form.is_valid() and form.step:
        return finish_setup(request, user, secret, form.step)
    context = {
        "form": form,
        "account": user,
        "secret": " ".join(secret[start : start + 4] for start in range(0, len(secret), 4)),
        "qr_code": segno.make(totp.build_uri(secret, user.get_username())).svg_data_uri(scale=5),
        "is_demanded": totp.is_demanded(user),
    }
    return render(request, "accounts/two_factor_setup.html", context)


def get_setup_secret(request: HttpRequest) -> str:
    """Returns the secret that the page shows. It stays the same when the page is reloaded."""
    try:
        return encryption.decrypt(request.session[SETUP_KEY], totp.PURPOSE)
    except (KeyError, encryption.DecryptionError):
        secret = totp.generate_totp_secret()
        request.session[SETUP_KEY] = encryption.encrypt(secret, totp.PURPOSE)
        return secret


def finish_setup(request: HttpRequest, user: User, secret: str, step: int) -> HttpResponse:
    factor, codes = totp.turn_on(user, secret, step, timezone.now())
    del request.session[SETUP_KEY]
    if request.user.is_authenticated:
        lockout.clear_attempts(request, user.get_username())
        sessions.remember_factor(request, factor)
    else:
        sessions.complete_sign_in(request, user, factor)
    sessions.end_other_sessions(request, user)
    return render_codes(request, codes)


def change_factor(request: HttpRequest, user: User, factor: SecondFactor) -> HttpResponse:
    if request.method != "POST":
        return render_factor(request, user, factor, CodeForm(user))
    if not lockout.count_password_attempt(request, user.get_username()):
        return lockout.render_locked(request)
    form = CodeForm(user, request.POST)
    if not form.is_valid():
        return render_factor(request, user, factor, form)
    lockout.clear_attempts(request, user.get_username())
    if "renew" in request.POST:
        return render_codes(request, totp.renew_recovery_codes(factor), has_earlier=True)
    totp.turn_off(user)
    sessions.forget_factor(request)
    messages.success(request, gettext("Two-factor sign-in is turned off."))
    return HttpResponseRedirect(resolve_url("accounts:profile"))


def render_factor(request: HttpRequest, user: User, factor: SecondFactor, form: CodeForm) -> HttpResponse:
    context = {
        "form": form,
        "factor": factor,
        "codes_left": factor.recovery_codes.count(),
        "is_demanded": totp.is_demanded(user),
    }
    return render(request, "accounts/two_factor.html", context)


def render_codes(request: HttpRequest, codes: list[str], *, has_earlier: bool = False) -> HttpResponse:
    """Shows the new recovery codes. They cannot be shown again."""
    context = {"codes": codes, "has_earlier": has_earlier, "next": get_next_page(request)}
    return render(request, "accounts/recovery_codes.html", context)

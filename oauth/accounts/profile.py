"""The account page, where people change their name and mail address."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render, resolve_url
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from oauth.accounts import roles, totp
from oauth.accounts.forms import ProfileForm
from oauth.passwords import lockout


@sensitive_post_parameters()
@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit_profile(request: HttpRequest) -> HttpResponse:
    # Not request.user: the form changes its instance before it is saved, and the page shows the name of request.user.
    user = get_object_or_404(User, pk=request.user.pk)
    if request.method == "POST":
        return save_profile(request, user)
    return render_profile(request, user, ProfileForm(instance=user))


def save_profile(request: HttpRequest, user: User) -> HttpResponse:
    """Failures count toward the lockout: otherwise a stolen session could guess the password."""
    has_password = bool(request.POST.get("password"))
    if has_password and not lockout.count_password_attempt(request, user.get_username()):
        return lockout.render_locked(request)
    form = ProfileForm(request.POST, instance=user)
    is_valid = form.is_valid()
    if has_password and "password" not in form.errors:
        lockout.clear_attempts(request, user.get_username())
    if not is_valid:
        return render_profile(request, user, form)
    user.save(update_fields=form.changed_columns)
    messages.success(request, gettext("Your profile is saved."))
    return HttpResponseRedirect(resolve_url("accounts:profile"))


def render_profile(request: HttpRequest, user: User, form: ProfileForm) -> HttpResponse:
    context = {
        "form": form,
        "has_second_factor": totp.find_factor(user) is not None,
        "sentences": roles.describe_user(user),
    }
    return render(request, "accounts/profile.html", context)

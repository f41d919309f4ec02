"""The language that a person chooses. A cookie stores it, and the account stores it for mails and the next sign-in."""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_POST

from library_site.http.localization import choose_language
from oauth.accounts.next_page import get_next_page
from oauth.models import Profile


@require_POST
def change_language(request: HttpRequest) -> HttpResponse:
    """Changes the language of the pages and, for a signed-in user, of mails. Redirects back to the page."""
    language = request.POST.get("language", "")
    if language in dict(settings.LANGUAGES):
        choose_language(request, language)
        if isinstance(request.user, User):
            Profile.objects.update_or_create(user=request.user, defaults={"language": language})
    return HttpResponseRedirect(get_next_page(request))


@receiver(user_logged_in)
def choose_language_of_user(request: HttpRequest, user: User, **others: Any) -> None:
    if profile := Profile.objects.filter(user=user).first():
        choose_language(request, profile.language)


def find_language(user: User, default: str = "") -> str:
    """The language that the person chose, for mails."""
    profile = Profile.objects.filter(user=user).first()
    return profile.language if profile else default or settings.LANGUAGE_CODE

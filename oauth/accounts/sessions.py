"""The sessions of users. A session is valid only with the user's current second factor."""

from collections.abc import Mapping
from typing import Any

from django.contrib import auth
from django.contrib.auth.middleware import AuthenticationMiddleware as DjangoAuthenticationMiddleware
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.functional import SimpleLazyObject

from library_site.http.pages import for_pages
from oauth.accounts import totp
from oauth.models import SecondFactor

FACTOR_KEY = "second_factor"
# Session key of a user who entered the right password, but no code yet.
PENDING_KEY = "pending_sign_in"
PENDING_SECONDS = 15 * 60


@for_pages
class AuthenticationMiddleware(DjangoAuthenticationMiddleware):
    """Django's, but a session without the user's second factor is anonymous, so no view has to check the factor."""

    def process_request(self, request: HttpRequest) -> None:
        # No `request.auser`: it would not check the factor, and no view is asynchronous.
        request.user = SimpleLazyObject(lambda: get_user(request))  # type: ignore[assignment]  # as Django's own


def get_user(request: Any) -> User | AnonymousUser:
    """Returns the person of the session, and ends a session without the person's second factor."""
    if not hasattr(request, "_cached_user"):
        user = auth.get_user(request)
        if isinstance(user, User) and not is_session_complete(request.session, user):
            request.session.flush()
            user = AnonymousUser()
        request._cached_user = user
    found: User | AnonymousUser = request._cached_user
    return found


def is_session_complete(session: Any, user: User) -> bool:
    factor = totp.find_factor(user)
    if factor is None:
        return FACTOR_KEY not in session and not totp.is_demanded(user)
    return bool(session.get(FACTOR_KEY) == str(factor.pk))


def begin_sign_in(request: HttpRequest, user: Any) -> None:
    """Stores in the session that the password was right. Until the code is entered, the user is anonymous."""
    request.session.flush()
    request.session[PENDING_KEY] = {
        "user": user.pk,
        "hash": user.get_session_auth_hash(),
        "backend": user.backend,
        "at": timezone.now().timestamp(),
    }


def find_pending_user(request: HttpRequest) -> User | None:
    """Returns the user who entered the right password, or None if the password changed or the sign-in timed out."""
    pending = request.session.get(PENDING_KEY)
    if not pending or pending["at"] < timezone.now().timestamp() - PENDING_SECONDS:
        return None
    user = User.objects.filter(pk=pending["user"], is_active=True).first()
    if user is None or not constant_time_compare(user.get_session_auth_hash(), pending["hash"]):
        return None
    return user


def find_session_user_id(session: Mapping[str, Any]) -> int | None:
    """Returns the user's id from session data, also if the sign-in is not complete."""
    user_id = session.get(auth.SESSION_KEY) or session.get(PENDING_KEY, {}).get("user")
    return int(user_id) if user_id else None


def list_session_keys(user_id: int) -> list[str]:
    """Decodes all sessions: the user's id is inside the encoded data."""
    sessions = Session.objects.iterator()
    return [session.pk for session in sessions if find_session_user_id(session.get_decoded()) == user_id]


def end_other_sessions(request: HttpRequest, user: User) -> None:
    """A session from before two-factor sign-in would be valid again once it is turned off."""
    keys = set(list_session_keys(user.pk)) - {request.session.session_key}
    Session.objects.filter(pk__in=keys).delete()


def complete_sign_in(request: HttpRequest, user: User, factor: SecondFactor) -> None:
    pending = request.session.pop(PENDING_KEY)
    auth.login(request, user, pending["backend"])
    remember_factor(request, factor)


def remember_factor(request: HttpRequest, factor: SecondFactor) -> None:
    """Keeps this session valid, under another key."""
    request.session.cycle_key()
    request.session[FACTOR_KEY] = str(factor.pk)


def forget_factor(request: HttpRequest) -> None:
    """Keeps this session valid after the factor was turned off."""
    request.session.cycle_key()
    request.session.pop(FACTOR_KEY, None)

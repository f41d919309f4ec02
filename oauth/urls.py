"""The URL patterns of the authorization server and of the account pages."""

from django.contrib.auth.views import PasswordResetCompleteView, PasswordResetDoneView
from django.urls import include, path, re_path
from django.views.decorators.cache import never_cache
from django.views.generic import RedirectView

from oauth.accounts import granted_apps, languages, passwords, profile, sign_in, two_factor_pages
from oauth.accounts.mails import invitation_tokens
from oauth.api import openapi  # noqa: F401  # the import registers how each authentication is documented
from oauth.credentials import PROTECTED_RESOURCE_PATH
from oauth.server import consent, metadata, views

server_patterns = [
    re_path(r"^oauth/authorize/?$", consent.AuthorizationView.as_view(), name="authorize"),
    re_path(r"^oauth/token/?$", views.token, name="token"),
    re_path(r"^oauth/refresh/?$", views.refresh, name="refresh"),
    re_path(r"^oauth/resource/?$", views.resource, name="resource"),
    re_path(r"^oauth/revoke/?$", views.revoke, name="revoke"),
    re_path(r"^oauth/introspect/?$", views.introspect, name="introspect"),
    path(".well-known/oauth-authorization-server", metadata.metadata, name="metadata"),
    path(PROTECTED_RESOURCE_PATH, metadata.protected_resource, name="protected-resource"),
    # For clients that only know the server's address.
    path(".well-known/oauth-protected-resource", metadata.protected_resource, name="protected-server"),
    path(".well-known/jwks.json", metadata.public_jwks, name="jwks"),
]
reset_sent = never_cache(PasswordResetDoneView.as_view(template_name="accounts/password_reset_sent.html"))
password_set = never_cache(PasswordResetCompleteView.as_view(template_name="accounts/password_set.html"))
account_patterns = [
    re_path(r"^login/?$", sign_in.SignInView.as_view(), name="login"),
    re_path(r"^login/code/?$", sign_in.CodeView.as_view(), name="code"),
    re_path(r"^logout/?$", sign_in.SignOutView.as_view(), name="logout"),
    re_path(r"^apps/?$", granted_apps.list_apps, name="apps"),
    re_path(r"^language/?$", languages.change_language, name="language"),
    re_path(r"^profile/?$", profile.edit_profile, name="profile"),
    re_path(r"^password/?$", passwords.PasswordChangeView.as_view(), name="password"),
    re_path(r"^password/forgotten/?$", passwords.ResetRequestView.as_view(), name="password-reset"),
    re_path(r"^password/sent/?$", reset_sent, name="password-reset-sent"),
    re_path(r"^password/new/?$", passwords.NewPasswordView.as_view(), name="new-password"),
    re_path(r"^password/set/?$", password_set, name="password-set"),
    re_path(
        r"^invitation/?$",
        passwords.NewPasswordView.as_view(token_generator=invitation_tokens),
        name="invitation",
    ),
    re_path(r"^two-factor/?$", two_factor_pages.manage_two_factor, name="two-factor"),
]
urlpatterns = [
    path("", include((server_patterns, "oauth"))),
    path("accounts/", include((account_patterns, "accounts"))),
    # These come before the admin's own pages.
    path("admin/login/", sign_in.sign_in_to_admin),
    path("admin/logout/", sign_in.SignOutView.as_view()),
    path("admin/password_change/", RedirectView.as_view(pattern_name="accounts:password")),
]

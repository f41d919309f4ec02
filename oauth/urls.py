"""The addresses of the authorization server, and of people's pages."""

from django.urls import include, path, re_path

from oauth import accounts
from oauth.server import consent, endpoints

for_apps = [
    re_path(r"^oauth/authorize/?$", consent.Authorize.as_view(), name="authorize"),
    re_path(r"^oauth/token/?$", endpoints.token, name="token"),
    re_path(r"^oauth/refresh/?$", endpoints.refresh, name="refresh"),
    re_path(r"^oauth/resource/?$", endpoints.resource, name="resource"),
    re_path(r"^oauth/revoke/?$", endpoints.revoke, name="revoke"),
    re_path(r"^oauth/introspect/?$", endpoints.introspect, name="introspect"),
    path(".well-known/oauth-authorization-server", endpoints.metadata, name="metadata"),
    path(".well-known/jwks.json", endpoints.public_keys, name="jwks"),
]
for_people = [
    re_path(r"^login/?$", accounts.SignIn.as_view(), name="login"),
    re_path(r"^logout/?$", accounts.SignOut.as_view(), name="logout"),
    re_path(r"^apps/?$", accounts.apps, name="apps"),
]
urlpatterns = [
    path("", include((for_apps, "oauth"))),
    path("accounts/", include((for_people, "accounts"))),
]

"""The settings of an app beside the library, and what a Django developer adds to them."""

from reviews.settings import *

INSTALLED_APPS.insert(0, "tests.beside")
MIDDLEWARE.insert(0, "tests.beside.middleware.greet")
AUTHENTICATION_BACKENDS.insert(0, "django.contrib.auth.backends.RemoteUserBackend")
API_URLS[2].insert(0, "tests.beside.urls")
ROOT_URLCONF = "tests.beside.site"
LOGGING["loggers"]["reviews"] = {"level": "ERROR"}
OAUTH_SCOPES["reviews"] = ("Write reviews", "reviews.add_review")
ABSOLUTE_URL_OVERRIDES = {"reviews.review": lambda review: f"/api/v2/reviews/{review.pk}"}

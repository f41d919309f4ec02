"""Reads the library's settings from an environment, in this process."""

import os
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import CheckMessage
from django.core.checks.registry import registry
from django.test import override_settings

ROOT = Path(__file__).parent.parent.parent
# The library does not start without these.
REQUIRED_SECRETS = {
    "SECRET_KEY": "a-key-of-these-tests-alone-and-of-no-library",
    "OAUTH_JWKS_FILE": str(settings.OAUTH_JWKS_FILE),
}
# Django opens its connections once.
FIXED_SETTINGS = {"DATABASES", "LOGGING"}


def read_settings(environment: Mapping[str, str]) -> dict[str, Any]:
    """Returns the settings with no other environment variables than these and the required secrets.

    Raises ImproperlyConfigured.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", {**REQUIRED_SECRETS, **environment})
        values = runpy.run_path(str(ROOT / "library_site" / "settings.py"))
    return {name: value for name, value in values.items() if name.isupper()}


def override_by(environment: Mapping[str, str]) -> override_settings:
    """Uses the settings of this environment, except for those of the database and the logs, in a block."""
    values = read_settings(environment)
    return override_settings(**{name: value for name, value in values.items() if name not in FIXED_SETTINGS})


def run_checks_with(environment: Mapping[str, str]) -> dict[str | None, CheckMessage]:
    """Returns what the system checks report of these settings, by id.

    Those of models are left out: they are slow, and depend on no setting.
    """
    checks = [check for check in registry.get_checks() if "models" not in check.tags]
    with override_by(environment):
        return {message.id: message for check in checks for message in check(app_configs=None, databases=None)}

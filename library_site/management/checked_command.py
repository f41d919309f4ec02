"""The base of the library's commands."""

import logging
from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.core.management.base import BaseCommand, SystemCheckError

log = logging.getLogger("library_site.deployment.checks")


class CheckedCommand(BaseCommand):
    """Logs what the system checks find, each as one line with its level, where Django prints a list."""

    def check(
        self,
        app_configs: Sequence[AppConfig] | None = None,
        tags: Sequence[str] | None = None,
        display_num_errors: bool = False,
        include_deployment_checks: bool = False,
        fail_level: int = checks.ERROR,
        databases: Sequence[str] | None = None,
    ) -> None:
        """Raises SystemCheckError if a finding has `fail_level` or a higher one."""
        options: dict[str, Any] = {"include_deployment_checks": include_deployment_checks, "databases": databases}
        messages = checks.run_checks(app_configs, tags, **options)
        findings = [message for message in messages if not message.is_silenced()]
        # The worst come first.
        for finding in sorted(findings, key=lambda finding: (-finding.level, str(finding.id))):
            # In one line, with the id, and without the "?" that Django writes for no object.
            log.log(finding.level, "%s", " ".join(str(finding).split()).removeprefix("?: "))
        if failures := [finding for finding in findings if finding.is_serious(fail_level)]:
            raise SystemCheckError(f"Checks that failed: {len(failures)}. `manage.py doctor` says where to read on.")
        if display_num_errors:
            self.stdout.write(f"Findings of the checks: {len(findings)}.")

"""What was released stays as it is: databases have these migrations, and `deploy` tells their release by them."""

import inspect
import re
import sys
from hashlib import sha256

import pytest
from django.db.migrations.loader import MigrationLoader

from library_site.deployment.releases import RELEASES, Release

# By version. The next release brings the line of the one before, and no line ever changes.
DIGESTS = {
    "1.0.0": "66af53ea6ae1c6febe158b64455a218f022e8eb7c0b7176b94a106c79d49510f",
    "1.1.0": "5e918bf8aeec637f0f51bb5068336d836cb941c1e658d03545d5788290e13cc5",
}
# An import may follow its module.
IMPORT = re.compile(r"^(from \S+ )?import (\(.*?\)|.*?)$", re.MULTILINE | re.DOTALL)
LOADER = MigrationLoader(None)
# The migrations of 1.0.0 are squashed.
SQUASHED = {old: key for key, migration in LOADER.disk_migrations.items() for old in migration.replaces}


@pytest.mark.parametrize("release", RELEASES[:-1], ids=lambda release: release.version)
def test_a_release_and_its_migrations_never_change(release: Release) -> None:
    assert compute_digest(release) == DIGESTS.get(release.version)


def compute_digest(release: Release) -> str:
    last = sorted(release.last_migrations.items())
    plan = {key for name in last for key in LOADER.graph.forwards_plan(SQUASHED.get(name, name))}
    modules = [sys.modules[LOADER.disk_migrations[key].__module__] for key in sorted(plan) if key[0] in dict(last)]
    texts = [f"{app}.{name}" for app, name in last] + [IMPORT.sub("", inspect.getsource(module)) for module in modules]
    return sha256("\n".join(texts).encode()).hexdigest()

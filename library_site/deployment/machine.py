"""The metrics of this machine: the build, disks and the last backup."""

import os
import platform
from collections.abc import Iterable

import django
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from library_site.deployment.backups import read_backup_time
from library_site.deployment.checks import list_folders
from library_site.deployment.releases import VERSION


def read_machine() -> Iterable[Metric]:
    labels = ["version", "python", "django"]
    build = GaugeMetricFamily("library_build_info", "The release; the value is 1.", labels=labels)
    build.add_metric([VERSION, platform.python_version(), django.get_version()], 1)
    yield build
    yield read_disks()
    backup = read_backup_time()
    yield GaugeMetricFamily(
        "library_backup_timestamp_seconds",
        "When this machine made its last backup; 0 for never.",
        value=backup.timestamp() if backup else 0,
    )


def read_disks() -> Metric:
    """Reads the free share of each folder's disk. The machine of PostgreSQL must report its own disks."""
    free = GaugeMetricFamily("library_disk_free_ratio", "The free share of a disk, from 0 to 1.", labels=["folder"])
    for name, folder in list_folders().items():
        if folder.exists():
            disk = os.statvfs(folder)
            free.add_metric([name], disk.f_bavail / disk.f_blocks)
    return free

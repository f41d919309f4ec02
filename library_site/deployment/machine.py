"""The metrics of this machine: the build, the server's processes, disks, the last backup and the certificate."""

import os
import platform
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import django
from cryptography import x509
from django.conf import settings
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from library_site.deployment.backups.records import read_backup_time
from library_site.deployment.releases import VERSION
from library_site.deployment.written_paths import list_folders

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def read_machine() -> Iterable[Metric]:
    labels = ["version", "python", "django"]
    build = GaugeMetricFamily("library_build_info", "The release; the value is 1.", labels=labels)
    build.add_metric([VERSION, platform.python_version(), django.get_version()], 1)
    yield build
    yield from read_processes()
    yield read_disks()
    backup = read_backup_time()
    yield GaugeMetricFamily(
        "library_backup_timestamp_seconds",
        "When this machine made its last backup; 0 for never.",
        value=backup.timestamp() if backup else 0,
    )
    if settings.CERTIFICATE_FILE:
        yield GaugeMetricFamily(
            "library_certificate_end_timestamp_seconds",
            "When the certificate ends; 0 if it cannot be read.",
            value=read_certificate_end(settings.CERTIFICATE_FILE),
        )


def read_processes() -> Iterator[Metric]:
    """Reads the server's parent process and its workers, which are numbered in the order of their process ids."""
    memory = GaugeMetricFamily(
        "library_process_memory_bytes", "Memory of a process; of what processes share, its part.", labels=["process"]
    )
    cpu = CounterMetricFamily("library_process_cpu_seconds", "CPU time of a process.", labels=["process"])
    start = GaugeMetricFamily("library_process_start_time_seconds", "When a process started.", labels=["process"])
    for name, pid in list_processes(os.getppid()).items():
        try:
            memory.add_metric([name], read_memory(pid))
            cpu_seconds, start_time = read_times(pid)
        except OSError:
            # The process has ended.
            continue
        cpu.add_metric([name], cpu_seconds)
        start.add_metric([name], start_time)
    yield from (memory, cpu, start)


def list_processes(parent: int) -> dict[str, int]:
    try:
        children = (PROC / str(parent) / "task" / str(parent) / "children").read_text().split()
    except OSError:
        return {}
    workers = {f"worker {number}": pid for number, pid in enumerate(sorted(map(int, children)), 1)}
    return {"parent": parent, **workers}


def read_memory(pid: int) -> int:
    """Bytes. Raises OSError."""
    lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


def read_times(pid: int) -> tuple[float, float]:
    """CPU seconds, and when it started (proc(5), fields 14, 15 and 22). Raises OSError."""
    fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    uptime = float((PROC / "uptime").read_text().split()[0])
    age = uptime - int(fields[19]) / TICKS_PER_SECOND
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND, time.time() - age


def read_disks() -> Metric:
    """Reads the free share of each folder's disk. The machine of PostgreSQL must report its own disks."""
    free = GaugeMetricFamily("library_disk_free_ratio", "The free share of a disk, from 0 to 1.", labels=["folder"])
    for name, folder in list_folders().items():
        if folder.exists():
            disk = os.statvfs(folder)
            free.add_metric([name], disk.f_bavail / disk.f_blocks)
    return free


def read_certificate_end(path: Path) -> float:
    """Returns the end of the first certificate in the file, which is the server's; 0 if it cannot be read."""
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())[0].not_valid_after_utc.timestamp()
    except (OSError, ValueError):
        return 0

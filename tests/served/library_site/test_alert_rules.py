"""The alert rules in docs/deploy: promtool reads them, and they name metrics that there are."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from prometheus_client import generate_latest

from library_site.monitoring.metrics import get_server_metrics
from tests.support.waiting import PROCESS_TIMEOUT

RULES = Path(__file__).parents[3] / "docs/deploy/prometheus-rules.yml"
QUARTER, HOUR, DAY = 15, 60, 24 * 60
STATUS = 'library_request_duration_seconds_count{{status="{}"}}'
BUCKET = 'library_request_duration_seconds_bucket{{route="books",le="{}"}}'
DEAD = 'library_deliveries_total{result="dead"}'
OLDEST = 'library_deliveries_oldest_seconds{{endpoint="{}"}}'
CONNECTIONS = 'library_database_connections{{process="{}"}}'
MAX_CONNECTIONS = "library_database_connections_max"


def late(queue: str, seconds: int) -> dict[str, str]:
    return {f"library_{queue}_overdue_seconds": f"{seconds}x200"}


# By alert: the minute at which it is asked for, series that are well, and series that are not, in promtool's writing.
BEHAVIOUR: dict[str, tuple[int, dict[str, str], dict[str, str]]] = {
    "LibraryIsDown": (2, {'up{job="library"}': "1x200"}, {'up{job="library"}': "0x200"}),
    "LibraryIsNotReady": (2, {"library_check_up": "1x200"}, {"library_check_up": "0x200"}),
    "LibraryFailsRequests": (
        20,
        {STATUS.format(200): "0+1000x200", STATUS.format(500): "0+9x200", STATUS.format(502): "0+500x200"},
        {STATUS.format(200): "0+1000x200", STATUS.format(500): "0+11x200"},
    ),
    "LibraryIsSlow": (
        20,
        {BUCKET.format("0.5"): "0+96x200", BUCKET.format("+Inf"): "0+100x200"},
        {BUCKET.format("0.5"): "0+94x200", BUCKET.format("1"): "0+100x200", BUCKET.format("+Inf"): "0+100x200"},
    ),
    "LibraryThreadsAreBusy": (
        3,
        {"library_threads_busy": "14x200", "library_threads": "16x200"},
        {"library_threads_busy": "15x200", "library_threads": "16x200"},
    ),
    "LibraryDatabaseFails": (
        20,
        {"library_database_errors_total": "0+5x200"},
        {"library_database_errors_total": "0+7x200"},
    ),
    "LibraryRedisIsDown": (6, {"library_redis_up": "1x200"}, {"library_redis_up": "0x200"}),
    "LibraryDeliveriesAreLate": (3, late("deliveries", 120), late("deliveries", 121)),
    "LibraryEndpointIsLate": (6, {OLDEST.format(7): "600x200"}, {OLDEST.format(7): "601x200"}),
    "LibraryDeliveriesDie": (2 * HOUR, {DEAD: "0+0.1x200"}, {DEAD: "0+0.2x200"}),
    "LibraryOperationsAreLate": (6, late("operations", 600), late("operations", 601)),
    "LibraryBackupIsOld": (
        37 * HOUR,
        {"library_backup_timestamp_seconds": "0x200", 'library_backup_timestamp_seconds{instance="b"}': "7200x200"},
        {"library_backup_timestamp_seconds": "0x200"},
    ),
    "LibraryDiskIsFull": (16, {"library_disk_free_ratio": "0.2x200"}, {"library_disk_free_ratio": "0.19x200"}),
    "LibraryMailsAreLate": (6, late("mails", 600), late("mails", 601)),
    "LibrarySignInsFail": (6, {"library_sign_in_failures": "100x200"}, {"library_sign_in_failures": "101x200"}),
    "LibraryConnectionsRunOut": (
        6,
        {CONNECTIONS.format("web"): "80x200", CONNECTIONS.format("worker"): "10x200", MAX_CONNECTIONS: "100x200"},
        {CONNECTIONS.format("web"): "80x200", CONNECTIONS.format("worker"): "11x200", MAX_CONNECTIONS: "100x200"},
    ),
    "LibraryExpiryIsLate": (16, late("expiry", 21_600), late("expiry", 21_601)),
}
DASHBOARD = RULES.with_name("grafana-dashboard.json")
OPERATIONS = RULES.parents[1] / "operations/monitoring.md"


@pytest.mark.usefixtures("promtool")
def test_each_rule_alerts_when_it_should_and_not_before(tmp_path: Path) -> None:
    # Promtool asks all rules at each interval: one of days has a longer one. JSON is YAML.
    for interval in (1, QUARTER):
        groups = [
            build_group(name, series, minute, interval, firing=firing)
            for name, (minute, well, ill) in BEHAVIOUR.items()
            if (interval == QUARTER) == (minute > DAY)
            for series, firing in ((well, False), (ill, True))
        ]
        tests = {"rule_files": [str(RULES)], "evaluation_interval": f"{interval}m", "tests": groups}
        (tmp_path / f"{interval}.yml").write_text(json.dumps(tests))
    call = ["promtool", "test", "rules", *map(str, tmp_path.glob("*.yml"))]
    run = subprocess.run(call, capture_output=True, text=True, check=False, timeout=PROCESS_TIMEOUT)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout
    assert BEHAVIOUR.keys() == set(re.findall(r"alert: (\w+)", RULES.read_text()))


def build_group(name: str, series: dict[str, str], minute: int, interval: int, *, firing: bool) -> dict[str, Any]:
    """Returns a test in promtool's format. A rule waits before it alerts, so nothing does at the start."""
    alerts = f'count(ALERTS{{alertname="{name}", alertstate="firing"}})'
    samples = [{"labels": "{}", "value": 1}] if firing else []
    return {
        "name": f"{name}, {'ill' if firing else 'well'}",
        "interval": f"{interval}m",
        "input_series": [{"series": series, "values": values} for series, values in series.items()],
        "promql_expr_test": [
            {"expr": alerts, "eval_time": "0m", "exp_samples": []},
            {"expr": alerts, "eval_time": f"{minute}m", "exp_samples": samples},
        ],
    }


def test_the_rules_name_metrics_that_are_documented() -> None:
    documented = set(re.findall(r"^\| `(library_\w+)`", OPERATIONS.read_text(), re.MULTILINE))
    named = {re.sub(r"_(count|bucket)$", "", name) for name in re.findall(r"library_\w+", RULES.read_text())}
    assert named <= documented
    metrics = get_server_metrics()
    assert metrics
    counted = re.findall(r"^# TYPE (library_\w+)", generate_latest(metrics.registry).decode(), re.MULTILINE)
    assert {name for name in counted if not name.endswith("_created")} <= documented


def test_the_dashboard_shows_each_metric_and_no_other() -> None:
    documented = set(re.findall(r"^\| `(library_\w+)`", OPERATIONS.read_text(), re.MULTILINE))
    panels = json.loads(DASHBOARD.read_text())["panels"]
    shown = re.findall(r"library_\w+", " ".join(target["expr"] for panel in panels for target in panel["targets"]))
    assert {re.sub(r"_(count|bucket)$", "", name) for name in shown} == documented
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_the_rules_leave_out_routes_that_there_are() -> None:
    routes = re.findall(r'route!="([\w:]+)"', RULES.read_text())
    assert [reverse(route) for route in routes] == ["/admin/books/book/catalogue/"]

"""The alert rules in docs/deploy: promtool reads them, and they name metrics that there are."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from django.urls import reverse
from prometheus_client import generate_latest

from library_site.monitoring.metrics import get_server_metrics
from tests.support.waiting import PROCESS_TIMEOUT

pytestmark = pytest.mark.database_independent

RULES = Path(__file__).parents[3] / "docs/deploy/prometheus-rules.yml"
DASHBOARD = RULES.with_name("grafana-dashboard.json")
OPERATIONS = RULES.parents[1] / "operations/monitoring.md"


@pytest.mark.usefixtures("promtool")
def test_promtool_reads_the_rules() -> None:
    check = subprocess.run(
        ["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, check=False, timeout=PROCESS_TIMEOUT
    )
    assert (check.returncode, check.stderr) == (0, "")
    assert "SUCCESS: 17 rules found" in check.stdout


def test_the_rules_name_metrics_that_are_documented() -> None:
    documented = set(re.findall(r"^\| `(library_\w+)`", OPERATIONS.read_text(), re.MULTILINE))
    named = {re.sub(r"_(count|bucket)$", "", name) for name in re.findall(r"library_\w+", RULES.read_text())}
    assert named <= documented
    counted = re.findall(
        r"^# TYPE (library_\w+)", generate_latest(get_server_metrics().registry).decode(), re.MULTILINE
    )
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

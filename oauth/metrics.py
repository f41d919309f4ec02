"""The metrics of accounts."""

from collections.abc import Iterable

from django.db.models import Count, Min, Sum
from django.utils import timezone
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from library_site.monitoring.sources import get_seconds
from oauth.models import AccountMail
from oauth.passwords.lockout import select_recent_attempts


def read_accounts() -> Iterable[Metric]:
    now = timezone.now()
    waiting = AccountMail.objects.filter(due_at__isnull=False).aggregate(count=Count("pk"), due=Min("due_at"))
    yield GaugeMetricFamily("library_mails_waiting", "Mails about accounts that wait.", value=waiting["count"])
    yield GaugeMetricFamily(
        "library_mails_overdue_seconds",
        "For how long the mail that is due longest has been due.",
        value=get_seconds(waiting["due"], now),
    )
    failures = select_recent_attempts(now).aggregate(sum=Sum("failures_since_start"))["sum"]
    yield GaugeMetricFamily(
        "library_sign_in_failures", "Wrong passwords and codes that count towards a lockout now.", value=failures or 0
    )

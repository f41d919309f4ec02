"""Redis that answers, and Redis that does not."""

from pathlib import Path

from pytest_django import Settings

from library_site.deployment.checks import check_redis_answers
from library_site.monitoring.sources import read_redis
from tests.support.redis_server import start_redis
from tests.support.settings import override_by

LIMITED = {"API_RATE_LIMIT": "9/second", "LIBRARY_PROCESS": "web"}


def test_a_scrape_says_whether_redis_answers(settings: Settings, tmp_path: Path, redis_server: str) -> None:
    def read_state() -> list[float]:
        return [sample.value for metric in read_redis() for sample in metric.samples]

    assert read_state() == []
    with start_redis(tmp_path) as redis:
        settings.REDIS_URL = redis.url
        assert read_state() == [1]
    assert read_state() == [0]


def test_a_server_says_at_the_start_that_redis_does_not_answer(redis_server: str, tmp_path: Path) -> None:
    with start_redis(tmp_path) as redis, override_by({**LIMITED, "REDIS_URL": redis.url}):
        assert not list(check_redis_answers(None))
        redis.stop()
        [warning] = check_redis_answers(None)
    assert (warning.id, warning.is_serious()) == ("library_site.W015", False)
    for process, count in (("worker", 0), ("command", 0), ("doctor", 1)):
        with override_by({**LIMITED, "REDIS_URL": "redis://127.0.0.1:1", "LIBRARY_PROCESS": process}):
            assert len([*check_redis_answers(None)]) == count

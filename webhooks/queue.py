"""For how long a worker has what it claimed, and when an attempt that failed is made again."""

from datetime import timedelta

# At least twice as long as a request may take.
LEASE_TIME = timedelta(seconds=30)
# More workers than these do not come back from it, and it is claimed no more.
MAX_LOST_WORKERS = 10
POISONED_REASON = f"Poison: more than {MAX_LOST_WORKERS} workers did not come back from it."
# Seconds after the first to the fourth attempt; the fifth is the last.
RETRY_DELAYS = (10, 60, 600, 3600)
MAX_RETRY_DELAY = timedelta(seconds=RETRY_DELAYS[-1])


def is_last_attempt(attempt: int) -> bool:
    """`attempt` counts from 1."""
    return attempt > len(RETRY_DELAYS)


def get_retry_delay(attempt: int, chance: float) -> timedelta:
    """After an attempt, but the last, with a fifth of jitter by `chance` from 0 to 1."""
    return timedelta(seconds=RETRY_DELAYS[attempt - 1] * (0.8 + 0.4 * chance))

"""For how long a worker has what it claimed, and when an attempt that failed is made again."""

from datetime import timedelta

# At least twice as long as a request may take.
LEASE = timedelta(seconds=30)
# More workers than these do not come back from it, and it is claimed no more.
POISON = 10
POISONED = f"Poison: more than {POISON} workers did not come back from it."
# Seconds after the first to the fourth attempt; the fifth is the last.
DELAYS = (10, 60, 600, 3600)
LONGEST_DELAY = timedelta(seconds=DELAYS[-1])


def is_last(attempt: int) -> bool:
    """`attempt` counts from 1."""
    return attempt > len(DELAYS)


def delay(attempt: int, chance: float) -> timedelta:
    """After an attempt, but the last, with a fifth of jitter by `chance` from 0 to 1."""
    return timedelta(seconds=DELAYS[attempt - 1] * (0.8 + 0.4 * chance))

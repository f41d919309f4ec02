"""When an attempt that failed is made again."""

from datetime import timedelta

# Seconds after the first to the fourth attempt; the fifth is the last.
DELAYS = (10, 60, 600, 3600)


def delay(attempted: int, chance: float) -> timedelta | None:
    """Until the next attempt, with a fifth of jitter by `chance` from 0 to 1; None after the last."""
    if attempted > len(DELAYS):
        return None
    return timedelta(seconds=DELAYS[attempted - 1] * (0.8 + 0.4 * chance))

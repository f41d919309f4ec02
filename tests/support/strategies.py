"""Hypothesis settings, and strategies for JSON."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

hypothesis_settings = settings(
    # Half of the profile's: each example sends at least one request to a real database.
    max_examples=settings().max_examples // 2,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
# Includes lone surrogates, which JSON can escape.
any_text = st.text(st.characters(exclude_categories=()), max_size=70)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda values: st.lists(values, max_size=4) | st.dictionaries(any_text, values, max_size=4),
    max_leaves=12,
)

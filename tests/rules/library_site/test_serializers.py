"""Serializers remember how their fields are built, as long as they exist."""

import gc
import weakref

from books.serializers import NewBookSerializer


def test_a_class_that_is_made_for_one_request_is_freed() -> None:
    def validate() -> weakref.ref[type]:
        class OwnSerializer(NewBookSerializer):
            pass

        assert not OwnSerializer(data={}).is_valid()
        return weakref.ref(OwnSerializer)

    made_class = validate()
    gc.collect()
    assert made_class() is None

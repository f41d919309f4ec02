from django.apps import AppConfig
from django.core import checks

from webhooks.registry import register_kind


class BesideConfig(AppConfig):
    name = "tests.beside"
    label = "beside"

    def ready(self):
        checks.register(find_dull_reviews, "reviews")
        register_kind("review.written", "A review was written.")


def find_dull_reviews(app_configs, **options):
    return [checks.Info("No review is dull.", id="reviews.I001")]

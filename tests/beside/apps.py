from django.apps import AppConfig
from django.core import checks


class BesideConfig(AppConfig):
    name = "tests.beside"
    label = "beside"

    def ready(self):
        checks.register(find_dull_reviews, "reviews")


def find_dull_reviews(app_configs, **options):
    return [checks.Info("No review is dull.", id="reviews.I001")]

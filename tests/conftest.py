"""Settings of all tests: hypothesis draws the same examples on every run and on every machine."""

from hypothesis import settings

settings.register_profile("tdce", deadline=None, derandomize=True, max_examples=1500)
settings.load_profile("tdce")

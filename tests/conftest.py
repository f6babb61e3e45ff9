"""Settings of all tests: hypothesis draws the same examples on every run and on every machine."""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # test processes run side by side; before torch is imported, and for subprocesses

from hypothesis import settings

settings.register_profile("tdce", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("thorough", deadline=None, max_examples=2000)  # pytest --hypothesis-profile=thorough
settings.load_profile("tdce")

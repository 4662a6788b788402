"""How hard hypothesis tries: `make test` a little everywhere, `make laws` 20,000 times each. And a real API server."""

import os

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.cluster.fixtures"]

_PATIENT = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile("quick", max_examples=150, deadline=None, suppress_health_check=_PATIENT)
settings.register_profile("deep", max_examples=20_000, deadline=None, suppress_health_check=_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

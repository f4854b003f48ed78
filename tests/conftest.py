"""One hypothesis profile: no deadline (the first call compiles), the same examples anywhere."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fastece",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fastece")

"""Whether kernels are compiled, or plain Python."""

import os

PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

"""The decorator of kernels: no garbage collection and no interrupt while one is compiled."""

import gc
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from fastece.kernels import compiling


@pytest.mark.parametrize("was_enabled", [True, False])
def test_no_search_for_circles_of_objects_while_a_kernel_is_compiled(was_enabled):
    (gc.enable if was_enabled else gc.disable)()
    try:
        with suppress(TypeError), compiling.without_collector():
            assert not gc.isenabled()
            raise TypeError
        assert gc.isenabled() == was_enabled
    finally:
        gc.enable()


@pytest.fixture
def interrupts():
    """Interrupts raise KeyboardInterrupt, also where the shell of the tests ignores them."""
    handler_before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler_before)


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("place", ["main", "thread"])
def test_an_interrupt_waits_until_a_kernel_is_compiled(place):
    seen = []

    @compiling.without_interrupts()
    def compile_kernel():
        if place == "main":
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)  # where Python looks for signals
        seen.append("compiled")

    if place == "thread":
        with ThreadPoolExecutor(1) as pool:
            pool.submit(compile_kernel).result()
    else:
        with pytest.raises(KeyboardInterrupt):
            compile_kernel()
    assert seen == ["compiled"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_that_raises_nothing_needs_no_wait():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with compiling.without_interrupts():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN

"""Interrupts: at every line of the package, and by a signal at random moments."""

import linecache
import os
import signal
import sys
import time
import traceback
from contextlib import contextmanager, suppress

import numpy as np

import fastece
from fastece.data.errors import is_interrupt

PACKAGE = os.path.dirname(fastece.__file__) + os.sep
# The coverage package may be inside any line, and would keep its lock for ever.
NOT_INTERRUPTED = "coverage"


class Interrupt(KeyboardInterrupt):
    """In place of Ctrl-C, so that a real one still ends the tests."""


@contextmanager
def interrupt_at_line(last):
    """Raise an interrupt before the `last` line of the package that is executed inside.

    Yields a list that has an entry once it was raised. The end of a `with` block is passed over:
    the interpreter answers no signal between a block and its exit.
    """
    count = 0
    raised = []
    begun = set()
    previous = sys.gettrace()

    def trace(frame, event, _):
        nonlocal count
        if not frame.f_code.co_filename.startswith(PACKAGE) or raised:
            return None
        if event == "line":
            place = id(frame), frame.f_lineno
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
            if line.startswith("with ") and place in begun:
                return trace
            begun.add(place)
            count += 1
            if count == last:
                raised.append(place)
                raise Interrupt
        return trace

    sys.settrace(trace)
    try:
        with suppress(Interrupt):
            yield raised
    finally:
        sys.settrace(previous)


def packages_of(frame):
    """Names of the packages whose functions are being called."""
    while frame is not None:
        yield frame.f_globals["__name__"].partition(".")[0]
        frame = frame.f_back


def interrupt_after(seconds, action):
    """Call an action, and raise an interrupt in it by a real signal after some time.

    The standard library answers some interrupts by another error: a lock that it does not hold
    (`threading.Condition`), a depth that does not match (`ast.parse`).
    """
    came = False

    def answer(_, frame):
        nonlocal came
        if NOT_INTERRUPTED in packages_of(frame):
            signal.setitimer(signal.ITIMER_REAL, 1e-5)
        else:
            came = True
            raise Interrupt

    alarm = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    previous = signal.signal(signal.SIGINT, answer)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
            action()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupt:
        pass
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1].filename
        if not is_interrupt(error) and (not came or place.startswith(PACKAGE)):
            raise
    finally:
        signal.signal(signal.SIGALRM, alarm)
        signal.signal(signal.SIGINT, previous)


def seconds_of(action, rounds=5):
    """The median time of an action, which is called anew each time."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def moments(seconds, count, seed=0):
    """Random moments of an action that takes so long."""
    return np.random.default_rng(seed).uniform(0, 1.1 * seconds, count)

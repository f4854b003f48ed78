"""A Dask cluster whose workers share the work of a command."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from fastece.data.errors import InputError

NEEDS = "--scheduler needs Dask: pip install 'fastece[dask]'"
# Seconds that a scheduler has to answer, and then to have a worker. A scheduler in the same network
# answers within a second; its workers may just have been started.
SECONDS_TO_ANSWER = 10


@contextmanager
def connect_to_cluster(address: str) -> Iterator[Any]:
    """Yield a client of the Dask cluster at an address, and close it at the end.

    Raises
    ------
    ValueError
        If `address` is none, or if no scheduler with workers answers there within some seconds.
    ImportError
        Without the packages of the extra "dask".
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise ImportError(NEEDS) from error
    try:
        distributed.comm.get_address_host_port(address, strict=True)
    except ValueError as error:
        rule = "must be the address of a Dask scheduler, as tcp://HOST:8786"
        raise InputError("scheduler", rule, value=address) from error
    try:
        client = distributed.Client(address, timeout=SECONDS_TO_ANSWER, set_as_default=False)
    except OSError as error:
        rule = f"no Dask scheduler answers there within {SECONDS_TO_ANSWER} seconds"
        raise InputError("scheduler", rule, value=address) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=SECONDS_TO_ANSWER)
        except TimeoutError as error:
            rule = f"the cluster has had no workers for {SECONDS_TO_ANSWER} seconds"
            raise InputError("scheduler", rule, value=address) from error
        yield client

"""The workers of a Dask scheduler as an executor."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from trnspec.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

RETRIES = 10
"""Times that a part is evaluated again if its worker is lost."""
TIMEOUT = "30s"
"""For the connection to the scheduler."""


@contextmanager
def executor(address: str) -> Iterator[tuple[Executor, int]]:
    """An executor of the workers of a scheduler, and their number.

    Raises:
        UsageError: Dask is not installed, or there is no scheduler at the address.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise UsageError(f"distributed is not installed ({error}); pip install 'trnspec[dask]'") from error
    try:
        client = distributed.Client(address, timeout=TIMEOUT)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(f"there is no Dask scheduler at {address}: {error}") from error
    with client:
        yield client.get_executor(retries=RETRIES), max(1, len(client.scheduler_info()["workers"]))

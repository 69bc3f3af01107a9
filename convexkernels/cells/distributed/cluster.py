"""The Dask cluster that is connected, if one is, and what it means when it fails."""

import asyncio
import concurrent.futures
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from convexkernels.exceptions import ClusterError, ConvexKernelsError

LOST = (concurrent.futures.CancelledError, asyncio.CancelledError, TimeoutError)


def active_client() -> Any:
    """The `distributed.Client` that is connected, None where no client was made; ClusterError without scheduler."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        client = default_client()
    except ValueError:
        return None
    if client.status != "running":
        raise ClusterError(
            f"the scheduler of the active Dask client is gone ({client!r} is {client.status}); start a cluster, "
            "connect a new distributed.Client (or close this one, to compute here), and try again."
        )
    return client


def threads_and_memory() -> tuple[int, float]:
    """How many tasks run at once, and the least bytes that one of them may take; inf where nothing limits them."""
    client = active_client()
    if client is None:
        return os.cpu_count() or 1, float("inf")
    with cluster_errors():
        workers = client.scheduler_info()["workers"].values()
    limits = [worker["memory_limit"] / worker["nthreads"] for worker in workers if worker["memory_limit"]]
    return max(1, sum(worker["nthreads"] for worker in workers)), min(limits, default=float("inf"))


@contextmanager
def cluster_errors() -> Iterator[None]:
    """Say what the failures of a cluster mean; errors of the work itself pass."""
    try:
        yield
    except ConvexKernelsError:
        raise
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, LOST) or type(error).__module__.partition(".")[0] == "distributed":
            raise ClusterError(
                f"the Dask cluster was lost, or gave up ({type(error).__name__}: {str(error)[:300]}); check that the "
                "scheduler runs and that a worker has the memory for a few parts of the table and for its largest "
                "cell, connect a new distributed.Client, and try again."
            ) from error
        raise


def computed(*tasks: Any) -> tuple[Any, ...]:
    """Results of lazy values, by the active client or by Dask's local scheduler."""
    import dask

    active_client()
    with cluster_errors():
        return tuple(dask.compute(*tasks))

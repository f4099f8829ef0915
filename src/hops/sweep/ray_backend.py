"""A Ray cluster as an executor: Ray places the work, and does it again where a worker or a node is lost."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from hops.errors import UsageError

R = TypeVar("R")
RETRIES = 5  # of a task whose worker or node was lost


class RayExecutor(Executor):
    """Submits to a Ray cluster; `with` connects and disconnects.

    Args:
        address: of a cluster that runs, such as `ray://head:10001`; None: the one of this machine if there is one,
            else a new one that ends with this process.

    Raises UsageError without ray, or if the cluster does not answer.
    """

    def __init__(self, address: str | None = None) -> None:
        self._ray = _ray()
        self._mine = not self._ray.is_initialized()
        if self._mine:
            try:
                self._ray.init(address=address, logging_level="ERROR", log_to_driver=False, include_dashboard=False)
            except Exception as error:
                raise UsageError(f"--address: no Ray cluster at {address}: {error}") from error
        self._remote = self._ray.remote(max_retries=RETRIES)(_call)

    @property
    def workers(self) -> int:
        """How many points the cluster works on at once: its CPUs."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> "Future[R]":
        future: Future[R] = self._remote.remote(fn, args, kwargs).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if self._mine:
            self._ray.shutdown()


def _call(fn: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
    return fn(*args, **kwargs)


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise UsageError("--backend ray needs ray, which is not installed: pip install 'hops-sim[ray]'") from None
    return ray

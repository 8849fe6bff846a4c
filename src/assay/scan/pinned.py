"""Objects on the workers of a Dask cluster, each made of the partitions that lie there, which never leave it.

A method is called on all of them at once, one message for each worker. If a worker dies, what it had is made again on
others, from the graph of its partitions and the calls that its state follows from; results must not depend on which
partitions lie together.
"""

from collections.abc import Callable
from typing import Any

import cloudpickle
from dask.delayed import Delayed

_RETRIES = 2  # of a task that fails by an error
_PATIENCE = 20.0  # seconds after which a worker that has not answered is looked for
_MOST_LOST = 20  # workers lost in one fit

Call = tuple[str, tuple]
"""The name of a method and its arguments."""


class _Holder:
    """The actor of a worker: an object made of some partitions."""

    def __init__(self, packed: bytes, numbers: list[int], *parts: Any):
        make, arguments = cloudpickle.loads(packed)
        self.held = make(dict(zip(numbers, parts)), *arguments)

    def call(self, packed: bytes) -> Any:
        """Make several calls; return what the last one gives."""
        result = None
        for method, arguments in cloudpickle.loads(packed):
            result = getattr(self.held, method)(*arguments)
        return result


class Pinned:
    """One object on each worker that has partitions.

    tasks : the partitions, computed once, where Dask puts them
    make : make({number of a partition: the partition}, *arguments) returns the object of a worker
    journal : calls that the state of an object follows from
    """

    def __init__(self, tasks: list[Delayed], make: Callable[..., Any], *arguments: Any):
        from distributed import get_client

        self.client, self.tasks = get_client(), tasks
        self.journal: list[Call] = []
        self._make = cloudpickle.dumps((make, arguments))
        self._lost = 0
        self._holders = self._place(list(range(len(tasks))))

    def each(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method on each object and write it to the journal; return the results in no particular order."""
        call = method, arguments
        packed = cloudpickle.dumps([call])
        waiting = [(numbers, actor, _begun(actor, packed)) for numbers, actor in self._holders]
        self._holders, results = [], []
        for numbers, actor, answer in waiting:
            try:
                results.append(self._answer(actor, answer))
                self._holders.append((numbers, actor))
            except _Lost as error:
                results += self._again(numbers, call, error)
        self.journal.append(call)
        return results

    def _again(self, numbers: list[int], call: Call, error: Exception) -> list[Any]:
        """Make lost objects again elsewhere, and make all calls on them."""
        self._lost += 1
        if self._lost > _MOST_LOST:
            raise RuntimeError(f"{self._lost} workers were lost; see the logs of the cluster.") from error
        packed, results = cloudpickle.dumps([*self.journal, call]), []
        for found, actor in self._place(numbers):
            try:
                results.append(self._answer(actor, _begun(actor, packed)))
                self._holders.append((found, actor))
            except _Lost as again:
                results += self._again(found, call, again)
        return results

    def _place(self, numbers: list[int]) -> list[tuple[list[int], Any]]:
        """Compute partitions, and make an object of those that lie on the same worker."""
        from distributed import wait

        while True:
            futures = dict(zip(numbers, self.client.compute([self.tasks[i] for i in numbers], retries=_RETRIES)))
            wait(list(futures.values()))
            for future in futures.values():
                if future.status == "error":
                    future.result()  # raises what went wrong
            where = self.client.who_has(list(futures.values()))
            lying: dict[str, list[int]] = {}
            for number, future in futures.items():
                lying.setdefault(next(iter(where.get(future.key) or [""])), []).append(number)
            if "" in lying:
                continue  # a worker died since
            made = [
                (own, self.client.submit(
                    _Holder, self._make, own, *(futures[i] for i in own), actor=True, workers=[address],
                    allow_other_workers=True, pure=False,
                ))
                for address, own in lying.items()
            ]  # fmt: skip
            return [(own, future.result()) for own, future in made]

    def _answer(self, actor: Any, answer: Any) -> Any:
        """Wait for the answer of an actor; raise `_Lost` if its worker is gone."""
        if isinstance(answer, Exception):
            raise _Lost from answer
        while True:
            try:
                return answer.result(timeout=_PATIENCE)
            except TimeoutError as error:
                if answer.done():
                    raise _Lost from error
                if actor._address not in self.client.scheduler_info(n_workers=-1)["workers"]:
                    raise _Lost from None
            except OSError as error:
                raise _Lost from error


class _Lost(Exception):
    """The worker of an actor is gone."""


def _begun(actor: Any, packed: bytes) -> Any:
    """Begin a call; return what to wait for, or the error if the actor is known to be lost."""
    try:
        return actor.call(packed)
    except RuntimeError as error:
        return error

"""The processes of a run that torchrun started: how they meet, agree, wait for rank 0, and fail together.

Numbers and decisions travel as small CPU tensors (gloo), gradients on the device's own network (NCCL between GPUs). A
process that is alone has a World too, in which there is nothing to agree on and nothing is sent.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch.distributed import distributed_c10d as c10d
from torch.distributed.rendezvous import rendezvous

from headwise.config.ranks import Ranks
from headwise.errors import HeadwiseError, UsageError, WorkFailed

# A process that dies is noticed at once: its connections break. One that hangs is noticed after this time.
PATIENCE = timedelta(minutes=30)
_GLANCE = timedelta(seconds=20)  # how often a process that waits for rank 0 to prepare looks whether all is well
_FAREWELL = timedelta(seconds=5)  # for the others to hear why rank 0 ends


class RankFailed(WorkFailed):
    """Another rank failed, and this one ends because of it, with the same exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class World:
    """All processes of a run, as one of them sees them. Every rank calls the same methods in the same order."""

    def __init__(self, ranks: Ranks | None = None, store: c10d.Store | None = None) -> None:
        self.ranks = ranks or Ranks()
        self.rank, self.size, self.leads = self.ranks.rank, self.ranks.size, self.ranks.leads
        self._store = store
        self._told = 0

    def sum(self, values: Sequence[float]) -> list[float]:
        """Each value summed over the ranks."""
        if self.size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor)
        sums: list[float] = tensor.tolist()
        return sums

    def highest(self, value: int) -> int:
        if self.size == 1:
            return value
        tensor = torch.tensor([value])
        dist.all_reduce(tensor, dist.ReduceOp.MAX)
        return int(tensor)

    def of_leader(self, value: int = 0) -> int:
        """What rank 0 says; the value of the others does not count."""
        if self.size == 1:
            return value
        tensor = torch.tensor([value])
        dist.broadcast(tensor, 0)
        return int(tensor)

    def joined_up(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The values of all ranks, those of rank 0 first."""
        if self.size == 1:
            return values
        counts = [int(count) for count in self.sum([len(values) * (rank == self.rank) for rank in range(self.size)])]
        padded = torch.zeros(max(counts), dtype=torch.int64)
        padded[: len(values)] = torch.from_numpy(values)
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded)
        return np.concatenate([part[:count].numpy() for part, count in zip(parts, counts, strict=True)])

    def first(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Rank 0 does the work, however long it takes; the others wait and get what it returns, or fail as it did."""
        if self._store is None:
            return work()
        self._told += 1
        key = f"first/{self._told}"
        if not self.leads:
            return self._answer(key)
        try:
            result = work()
        except BaseException as error:
            failure = {"error": str(error) or repr(error), "code": getattr(error, "exit_code", 1)}
            self._store.set(key, json.dumps(failure))
            with suppress(RuntimeError):  # the store may be this process' own, and end with it
                self._store.wait([f"{key}/{rank}" for rank in range(1, self.size)], _FAREWELL)
            raise
        self._store.set(key, json.dumps({"result": result}))
        return result

    def meet(self) -> None:
        """Returns on rank 0 when all ranks are here, however long that takes; the others go on at once."""
        if self._store is None:
            return
        self._told += 1
        keys = [f"meet/{self._told}/{rank}" for rank in range(self.size)]
        self._store.set(keys[self.rank], "here")
        if self.leads:
            for key in keys:
                self._wait(key)

    def _answer(self, key: str) -> dict[str, Any]:
        self._wait(key)
        assert self._store is not None
        answer: dict[str, Any] = json.loads(self._store.get(key))
        if "error" in answer:
            self._store.set(f"{key}/{self.rank}", "heard")
            raise RankFailed(f"stopped, because rank 0 failed: {answer['error']}", answer["code"])
        result: dict[str, Any] = answer["result"]
        return result

    def _wait(self, key: str) -> None:
        """Without a limit: who is waited for works, or its end ends this process too (torchrun sees to that)."""
        assert self._store is not None
        while True:
            try:
                self._store.wait([key], _GLANCE)
            except dist.DistNetworkError:
                raise
            except dist.DistStoreError:
                continue  # not yet
            return


ALONE = World()


@contextmanager
def joined(device: torch.device | None = None) -> Iterator[World]:
    """Meets the other processes of the job; within the block an error is named with its rank and noted for torchrun."""
    ranks = Ranks.of_environment()
    if ranks.size == 1:
        yield World(ranks)
        return
    from torch.distributed.elastic.multiprocessing.errors import get_error_handler

    handler = get_error_handler()
    handler.initialize()
    try:
        yield World(ranks, _connect(device, ranks))
    except HeadwiseError as error:
        handler.record_exception(error)
        raise
    except RuntimeError as error:
        handler.record_exception(error)
        if not _lost_contact(error):
            print(f"headwise: rank {ranks.rank} failed", file=sys.stderr)
            raise
        reason = str(error).strip().splitlines()[0][:200]
        raise WorkFailed(f"lost contact with another rank, whose own message says why ({reason})") from error
    except Exception as error:
        handler.record_exception(error)
        print(f"headwise: rank {ranks.rank} failed", file=sys.stderr)
        raise
    dist.destroy_process_group()


def _connect(device: torch.device | None, ranks: Ranks) -> c10d.Store:
    kind = "cpu" if device is None else device.type
    if kind not in ("cpu", "cuda"):
        raise UsageError(f"several processes train on cpu or cuda, not on {kind}; set training.device")
    try:
        store: c10d.Store
        store, rank, size = next(iter(rendezvous("env://")))
    except (ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise WorkFailed(f"the ranks did not find each other ({reason}); start them with torchrun") from error
    if kind == "cuda":
        torch.cuda.set_device(device)
    backend = "gloo" if kind == "cpu" else "cpu:gloo,cuda:nccl"
    # torchrun keeps its store when it starts a job again: what the processes before have left there is not for these.
    own = c10d.PrefixStore(f"headwise/{ranks.restarts}/{size}", store)
    dist.init_process_group(backend, store=own, rank=rank, world_size=size, timeout=PATIENCE)
    return own


def _lost_contact(error: RuntimeError) -> bool:
    """gloo raises plain RuntimeErrors, known by their text alone."""
    signs = ("gloo", "connection closed", "connection reset", "broken pipe", "timed out", "nccl")
    return isinstance(error, dist.DistError) or any(sign in str(error).lower() for sign in signs)

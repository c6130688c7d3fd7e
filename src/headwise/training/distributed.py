"""Connects the processes that torchrun started: they agree on decisions, wait for rank 0, and fail together.

Numbers and decisions are sent as small CPU tensors (gloo), gradients over the device's own network (NCCL between GPUs).
A single process has a World too, which sends nothing.
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
from torch import Tensor
from torch.distributed import distributed_c10d as c10d
from torch.distributed.rendezvous import rendezvous

from headwise.config.ranks import Ranks
from headwise.errors import HeadwiseError, UsageError, WorkFailed

# A process that dies is noticed at once, because its connections break. One that hangs is noticed after this time.
COLLECTIVE_TIMEOUT = timedelta(minutes=30)
_POLL_INTERVAL = timedelta(seconds=20)  # a rank that waits checks the connection this often
_FAILURE_TIMEOUT = timedelta(seconds=5)  # rank 0 gives the others this long to read why it failed


class RankFailed(WorkFailed):
    """Ends this rank because another one failed, with the same exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class World:
    """All processes of a run, seen from one of them. Every rank must call the same methods in the same order."""

    def __init__(self, ranks: Ranks | None = None, store: c10d.Store | None = None) -> None:
        self.ranks = ranks or Ranks()
        self.rank, self.size, self.leads = self.ranks.rank, self.ranks.size, self.ranks.leads
        self._store = store
        self._calls = 0  # makes the keys in the store unique

    def sum(self, values: Sequence[float]) -> list[float]:
        """Sums each value over the ranks."""
        if self.size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor)
        sums: list[float] = tensor.tolist()
        return sums

    def maximum(self, value: int) -> int:
        """Returns the largest value of any rank."""
        if self.size == 1:
            return value
        tensor = torch.tensor([value])
        dist.all_reduce(tensor, dist.ReduceOp.MAX)
        return int(tensor)

    def broadcast(self, value: int = 0) -> int:
        """Returns rank 0's value on every rank; the other ranks' values are ignored."""
        if self.size == 1:
            return value
        tensor = torch.tensor([value])
        dist.broadcast(tensor, 0)
        return int(tensor)

    def gather(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Concatenates the values of all ranks, in the order of the ranks."""
        if self.size == 1:
            return values
        counts = [int(count) for count in self.sum([len(values) * (rank == self.rank) for rank in range(self.size)])]
        padded = torch.zeros(max(counts), dtype=torch.int64)
        padded[: len(values)] = torch.from_numpy(values)
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded)
        return np.concatenate([part[:count].numpy() for part, count in zip(parts, counts, strict=True)])

    def gather_rows(self, rows: Tensor | None) -> Tensor:
        """Concatenates tensors of all ranks along their first axis; a rank without rows may have None."""
        if self.size == 1 and rows is not None:
            return rows
        axes = self.maximum(0 if rows is None else rows.dim())
        shape = [self.maximum(0 if rows is None else rows.size(axis)) for axis in range(axes)]
        padded = torch.zeros(shape)
        if rows is not None:
            padded[: len(rows)] = rows.cpu()
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        dist.all_gather(parts, padded)
        counts = self.sum([(0 if rows is None else len(rows)) * (rank == self.rank) for rank in range(self.size)])
        return torch.cat([part[: int(count)] for part, count in zip(parts, counts, strict=True)])

    def on_rank_0(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Runs `work` on rank 0 only; the other ranks wait without a limit and get its result, or fail as it did."""
        if self._store is None:
            return work()
        self._calls += 1
        key = f"first/{self._calls}"
        if not self.leads:
            return self._result(key)
        try:
            result = work()
        except BaseException as error:
            failure = {"error": str(error) or repr(error), "code": getattr(error, "exit_code", 1)}
            self._store.set(key, json.dumps(failure))
            with suppress(RuntimeError):  # the store may live in this process and end with it
                self._store.wait([f"{key}/{rank}" for rank in range(1, self.size)], _FAILURE_TIMEOUT)
            raise
        self._store.set(key, json.dumps({"result": result}))
        return result

    def wait_for_all(self) -> None:
        """Blocks rank 0, without a limit, until all ranks have called this; the other ranks continue at once."""
        if self._store is None:
            return
        self._calls += 1
        keys = [f"meet/{self._calls}/{rank}" for rank in range(self.size)]
        self._store.set(keys[self.rank], "here")
        if self.leads:
            for key in keys:
                self._wait(key)

    def _result(self, key: str) -> dict[str, Any]:
        self._wait(key)
        assert self._store is not None
        answer: dict[str, Any] = json.loads(self._store.get(key))
        if "error" in answer:
            self._store.set(f"{key}/{self.rank}", "heard")
            raise RankFailed(f"stopped because rank 0 failed: {answer['error']}", answer["code"])
        result: dict[str, Any] = answer["result"]
        return result

    def _wait(self, key: str) -> None:
        """Waits without a limit: if the other process ends instead of answering, torchrun ends this one too."""
        assert self._store is not None
        while True:
            try:
                self._store.wait([key], _POLL_INTERVAL)
            except dist.DistNetworkError:
                raise
            except dist.DistStoreError:
                continue  # not set yet
            return


ALONE = World()


@contextmanager
def joined(device: torch.device | None = None) -> Iterator[World]:
    """Connects the processes of the job; errors within the block name their rank and are recorded for torchrun."""
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
        raise WorkFailed(f"lost contact with another rank; its own message gives the cause ({reason})") from error
    except Exception as error:
        handler.record_exception(error)
        print(f"headwise: rank {ranks.rank} failed", file=sys.stderr)
        raise
    dist.destroy_process_group()


def _connect(device: torch.device | None, ranks: Ranks) -> c10d.Store:
    kind = "cpu" if device is None else device.type
    if kind not in ("cpu", "cuda"):
        raise UsageError(f"distributed training runs on cpu or cuda, not on {kind}; set training.device")
    try:
        store: c10d.Store
        store, rank, size = next(iter(rendezvous("env://")))
    except (ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise WorkFailed(f"the ranks could not connect to each other ({reason}); start them with torchrun") from error
    if kind == "cuda":
        torch.cuda.set_device(device)
    backend = "gloo" if kind == "cpu" else "cpu:gloo,cuda:nccl"
    # torchrun keeps its store when it restarts a job, so keys of the earlier processes must not be read by these.
    own = c10d.PrefixStore(f"headwise/{ranks.restarts}/{size}", store)
    dist.init_process_group(backend, store=own, rank=rank, world_size=size, timeout=COLLECTIVE_TIMEOUT)
    return own


def _lost_contact(error: RuntimeError) -> bool:
    """Recognises a broken connection. gloo raises plain RuntimeErrors that differ in their text only."""
    signs = ("gloo", "connection closed", "connection reset", "broken pipe", "timed out", "nccl")
    return isinstance(error, dist.DistError) or any(sign in str(error).lower() for sign in signs)

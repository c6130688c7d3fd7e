"""Which process of how many this is, as the environment that torchrun sets says. Needs no torch."""

from __future__ import annotations

import os
from dataclasses import dataclass

from headwise.errors import UsageError


@dataclass(frozen=True)
class Ranks:
    """Process `rank` of `size`; on this machine it is `local_rank` of `local_size`."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    restarts: int = 0  # how often torchrun has started this job again after a failure

    @classmethod
    def of_environment(cls) -> Ranks:
        """One process of its own where nothing else is said."""
        names = {
            "rank": "RANK", "size": "WORLD_SIZE", "local_rank": "LOCAL_RANK", "local_size": "LOCAL_WORLD_SIZE",
            "restarts": "TORCHELASTIC_RESTART_COUNT",
        }  # fmt: skip
        if not {"RANK", "WORLD_SIZE"} <= os.environ.keys():
            return cls()
        try:
            return cls(**{field: int(os.environ[name]) for field, name in names.items() if name in os.environ})
        except ValueError:
            values = ", ".join(f"{name}={os.environ.get(name)}" for name in names.values())
            raise UsageError(
                f"the environment names no rank ({values}); start several processes with torchrun"
            ) from None

    @property
    def leads(self) -> bool:
        """Rank 0 prepares, validates, saves and speaks for all."""
        return self.rank == 0

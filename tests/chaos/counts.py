"""How much of the campaign `make chaos` runs. Each count can be changed by an environment variable of its name:

HEADWISE_CHAOS_KILLS=50 HEADWISE_CHAOS_SOAK_SECONDS=60 make chaos
"""

from __future__ import annotations

import os

PREFIX = "HEADWISE_CHAOS_"


def _count(name: str, full: int) -> int:
    return int(os.environ.get(f"{PREFIX}{name}", full))


KILLS = _count("KILLS", 1_000)  # SIGKILLs of runs of one process; more than 300 of these hit a save
RANK_KILLS = _count("RANK_KILLS", 200)  # of runs on two ranks
DAMAGES = _count("DAMAGES", 10_000)  # bit flips and truncations, half of them in checkpoints
HOSTILE = _count("HOSTILE", 500)  # tampered model directories, spread over the kinds of models
REQUESTS = _count("REQUESTS", 100_000)  # to a server, schemathesis' included
SCHEMA_EXAMPLES = _count("SCHEMA_EXAMPLES", 700)  # of these per route, by schemathesis
SOAK_SECONDS = _count("SOAK_SECONDS", 1_800)
SOAK_CLIENTS = _count("SOAK_CLIENTS", 16)
SENTENCES = _count("SENTENCES", 10_000)  # translated alone, in batches and in other orders

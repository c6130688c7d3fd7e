"""Names of the files in a run directory: written by training, read by plot, serve and the run itself. Needs no torch.

recipe.toml       the resolved recipe, paths made absolute
log.jsonl         what was computed
times.jsonl       when, and how fast
tensorboard/      the same for TensorBoard
cache/            tokenizers and token stores
checkpoints/      the last ones and the best
model/            the best model so far
finished.json     written when the run has come to its end
.lock             held by the process that trains
"""

RECIPE, LOG, TIMES, TENSORBOARD = "recipe.toml", "log.jsonl", "times.jsonl", "tensorboard"
CACHE, CHECKPOINTS, MODEL, FINISHED, LOCK = "cache", "checkpoints", "model", "finished.json", ".lock"

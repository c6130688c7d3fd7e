"""Named sizes. A recipe takes one with `model.preset` and may change any single number beside it."""

from __future__ import annotations

from typing import Any

from headwise.config.schema import Model
from headwise.errors import RecipeError

_PAPER: dict[str, Any] = {
    "dropout": 0.1, "norm": "post", "activation": "relu", "positions": "sinusoidal", "max_length": 1024, "tie": "all",
}  # fmt: skip
# How a language model's words become vectors.
_WORDS: dict[str, Any] = {"cutoffs": [], "scale_embeddings": True}

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "transformer": {
        "tiny": {**_PAPER, "model_dim": 128, "num_heads": 4, "encoder_layers": 4, "decoder_layers": 4, "ff_dim": 256},
        "small": {**_PAPER, "model_dim": 256, "num_heads": 4, "encoder_layers": 3, "decoder_layers": 3, "ff_dim": 1024},
        # Table 3 of the paper, rows base and big.
        "base": {**_PAPER, "model_dim": 512, "num_heads": 8, "encoder_layers": 6, "decoder_layers": 6, "ff_dim": 2048},
        "big": {
            **_PAPER, "model_dim": 1024, "num_heads": 16, "encoder_layers": 6, "decoder_layers": 6, "ff_dim": 4096,
            "dropout": 0.3,
        },
    },
    "lm": {
        "lm-small": {**_PAPER, "model_dim": 256, "num_heads": 8, "layers": 4, "ff_dim": 512, **_WORDS},
        # Radford et al. 2019, the smallest model; it adds embeddings to positions as they are.
        "gpt2": {
            "model_dim": 768, "num_heads": 12, "layers": 12, "ff_dim": 3072, "dropout": 0.1, "norm": "pre",
            "activation": "gelu-tanh", "positions": "learned", "max_length": 1024, "tie": "all",
            "cutoffs": [], "scale_embeddings": False,
        },
    },
}  # fmt: skip
DEFAULT_PRESET = {"transformer": "base", "lm": "lm-small"}


def resolve_architecture(model: Model) -> dict[str, Any]:
    """The preset's numbers with the recipe's own over them; what the family does not have is an error."""
    presets = PRESETS[model.family]
    name = model.preset or DEFAULT_PRESET[model.family]
    if name not in presets:
        raise RecipeError(f"unknown model.preset '{name}' for family '{model.family}'; there are {', '.join(presets)}")
    own = model.model_dump(exclude={"family", "preset", "from_"}, exclude_none=True)
    known = {*presets[name], "attention_dropout", "activation_dropout"}
    for key in own:
        if key not in known:
            raise RecipeError(f"model.{key} does not belong to family '{model.family}'")
    return {**presets[name], **own}

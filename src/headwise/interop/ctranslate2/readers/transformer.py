"""CTranslate2's TransformerSpec as our `transformer`: models of OpenNMT, Argos and Marian, and exports of Headwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from headwise.bundle.assets import Assets
from headwise.errors import ModelError
from headwise.interop.ctranslate2.directory import Directory, read_weights
from headwise.interop.ctranslate2.layer_keys import stack_keys, stack_settings
from headwise.interop.ctranslate2.own_export import read_own
from headwise.interop.ctranslate2.parts import sinusoids
from headwise.interop.ctranslate2.translation_vocabulary import read_vocabularies
from headwise.interop.huggingface.published import licence_of
from headwise.interop.imported import Imported
from headwise.interop.keys import Key, Orders

READS = ("TransformerSpec", "TransformerBase", "TransformerBig")
_STACKS = ("encoder", "decoder")
_OUTPUT, _POSITIONS = "decoder/projection", "position_encodings/encodings"
_SIDES = {"encoder": "source", "decoder": "target"}
_COMPARED = 1024  # positions
_POSITION_ERROR = 2e-3  # a table of sinusoids may have been computed in float32, and stored as float16


def read(directory: Directory) -> Imported:
    tables = _tables(directory)
    ends = [f"{_OUTPUT}/bias", *(f"{stack}/{_POSITIONS}" for stack in _STACKS)]
    others = [f"{name}{ending}" for name in (*tables.values(), f"{_OUTPUT}/weight") for ending in ("", "_scale")]
    settings = [*stack_settings(*_STACKS), *ends, *others]
    if directory.manifest:
        return read_own(directory, lambda sizes: keys(sizes, tables), settings, "transformer")
    read = read_vocabularies(directory, shared=_same(directory, *tables.values()))
    order, positions = _positions(directory)
    architecture = {**_architecture(directory, tables, bool(read.added), positions), **read.sizes}
    orders = Orders(read.orders, order)
    weights = read_weights(
        directory, "transformer", architecture, keys(architecture, tables), orders, rows=read.added, settings=settings
    )
    origin = {
        "format": "ctranslate2", "source": directory.path.name, "licence": licence_of(directory.path),
    }  # fmt: skip
    return Imported(
        "transformer", "translate", architecture, weights, Assets(read.tokenizers), read.languages, origin=origin
    )


def keys(architecture: dict[str, Any], tables: dict[str, str]) -> Iterator[Key]:
    """`tables` has the names of the embeddings of both stacks."""
    tie = architecture["tie"]
    final = architecture["norm"] == "pre" if architecture["final_norm"] is None else architecture["final_norm"]
    yield Key("source_embedding.weight", (tables["encoder"],), vocabulary="source", width=(1,))
    if tie != "all":
        yield Key("target_embedding.weight", (tables["decoder"],), vocabulary="target", width=(1,))
    output = {"all": "source_embedding", "target": "target_embedding", "none": "output"}[tie]
    if tie == "none":
        yield Key("output.weight", (f"{_OUTPUT}/weight",), vocabulary="target", width=(1,))
    if architecture["output_bias"]:
        yield Key(f"{output}.bias", (f"{_OUTPUT}/bias",), vocabulary="target")
    for stack in _STACKS:
        if architecture["positions"] == "learned":
            yield Key(f"{_SIDES[stack]}_positions.weight", (f"{stack}/{_POSITIONS}",))
        layers = architecture[f"{stack}_layers"]
        yield from stack_keys(stack, stack, layers, cross=stack == "decoder", norm=bool(final))


def _tables(directory: Directory) -> dict[str, str]:
    """The names of the embeddings; old files do not number those of the source."""
    numbered = "encoder/embeddings_0/weight"
    source = numbered if numbered in directory.file else "encoder/embeddings/weight"
    return {"encoder": source, "decoder": "decoder/embeddings/weight"}


def _same(directory: Directory, *names: str) -> bool:
    """Whether these names stand for one tensor."""
    variables = directory.file.variables
    return all(name in variables for name in names) and len({variables[name].start for name in names}) == 1


def _architecture(
    directory: Directory, tables: dict[str, str], added: bool, positions: dict[str, Any]
) -> dict[str, Any]:
    """`added`: rows are added to the vocabulary, whose logits need a bias."""
    file, (source, target) = directory.file, tables.values()
    width = directory.matrix(source)[1]
    settings, others = (_stack(directory, stack, width) for stack in _STACKS)
    if different := [name for name in settings if settings[name] != others[name]]:
        raise ModelError(f"{file.file}: encoder and decoder differ in {different[0]}, which is not supported")
    tie = "none"
    if _same(directory, target, f"{_OUTPUT}/weight"):
        tie = "all" if _same(directory, source, target) else "target"
    epsilon = directory.config.get("layer_norm_epsilon")
    return {
        "model_dim": width,
        "encoder_layers": directory.layers("encoder"),
        "decoder_layers": directory.layers("decoder"),
        "ff_dim": directory.matrix("encoder/layer_0/ffn/linear_0/weight")[0],
        "norm_epsilon": float(epsilon) if isinstance(epsilon, float) and 0 <= epsilon < 1 else 1e-5,
        "tie": tie,
        "source_end": bool(directory.config.get("add_source_eos")) or _from_marian(directory),
        "output_bias": added or f"{_OUTPUT}/bias" in file,
        "absent": 0,
        **settings,
        **positions,
    }


def _stack(directory: Directory, stack: str, width: int) -> dict[str, Any]:
    """What is set for each stack, but must be the same for both."""
    file = directory.file
    for name in ("multi_query_attention", "alibi"):
        directory.must(f"{stack}/{name}", 0)
    _check_scale(directory, stack, width)
    pre, final = bool(directory.setting(stack, "pre_norm", 1)), f"{stack}/layer_norm/gamma" in file
    return {
        "num_heads": int(directory.setting(stack, "num_heads", 16 if file.specification.endswith("Big") else 8)),
        "norm": "pre" if pre else "post",
        "final_norm": None if final == pre else final,
        "activation": directory.activation(stack),
    }


def _from_marian(directory: Directory) -> bool:
    """Marian's models start with a vector of zeros; their sources end with an end of sentence, whatever is declared."""
    return bool(directory.file.number("decoder/start_from_zero_embedding", 0))


def _check_scale(directory: Directory, stack: str, width: int) -> None:
    """Embeddings must be multiplied by the square root of the width: a flag, or the number itself."""
    name = f"{stack}/scale_embeddings"
    if name not in directory.file:
        return
    number, flag = directory.file.number(name), directory.file.variables[name].type == "int8"
    if not (number == 1 if flag else abs(number - width**0.5) < 1e-2):
        raise ModelError(f"{directory.file.file}: {name} = {number:g} is not supported, only the root of the width")


def _positions(directory: Directory) -> tuple[Any, dict[str, Any]]:
    """The order of the width, and settings: sinusoids in the paper's order or in halves; any other table is learned."""
    import torch

    from headwise.interop.huggingface.families.marian import in_halves

    names = [f"{stack}/{_POSITIONS}" for stack in _STACKS]
    if not all(name in directory.file for name in names):
        raise ModelError(f"{directory.file.file} has no table of positions; models of OpenNMT-tf are not supported")
    sizes = {directory.matrix(name) for name in names}
    (length, width), *others = sizes
    one, other = (directory.file.floats(name) for name in names)
    if not others and width % 2 == 0 and np.array_equal(one, other):
        paper = sinusoids(min(length, _COMPARED), width)
        for order in (list(range(width)), in_halves(width)):
            if float(np.abs(one[:_COMPARED, order] - paper).max(initial=0)) < _POSITION_ERROR:
                same = order == list(range(width))
                return None if same else torch.tensor(order), {"positions": "sinusoidal", "max_length": length}
    return None, {"positions": "learned", "max_length": length}

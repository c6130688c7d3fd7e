"""Models in CTranslate2's format compute here what CTranslate2 computes, whoever converted them."""

from __future__ import annotations

import io
import json
import random
import shutil
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
from ctranslate2 import specs
from fixtures_published import TEXT, publish_marian

import headwise
from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import open_model
from headwise.decoding.torch_engine import TorchEngine
from headwise.interop.ctranslate2.parts import sinusoids
from headwise.workflows.import_model import import_model

sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed: pip install -e '.[dev]'")


def sentences(count: int) -> list[str]:
    choose, words = random.Random(3), TEXT.split()
    return [" ".join(choose.choices(words, k=choose.randint(1, 9))) for _ in range(count)]


def pieces_of(folder: Path, name: str, text: str, size: int) -> list[str]:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text.split("\n")), model_writer=model, vocab_size=size, hard_vocab_limit=False,
        minloglevel=9,
    )  # fmt: skip
    (folder / name).write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    numbers = range(processor.get_piece_size())
    return [processor.id_to_piece(n) for n in numbers if not processor.is_control(n) and not processor.is_unknown(n)]


def fill(part: Any, draw: np.random.Generator) -> None:
    """Random weights for whatever a specification leaves open."""
    width = 32

    def linear(layer: Any, out: int, inner: int, bias: bool = True) -> None:
        layer.weight = draw.normal(size=(out, inner)).astype(np.float32) * 0.3
        if bias:
            layer.bias = draw.normal(size=out).astype(np.float32) * 0.3

    def norm(layer: Any) -> None:
        layer.gamma = (1 + 0.3 * draw.normal(size=width)).astype(np.float32)
        layer.beta = 0.3 * draw.normal(size=width).astype(np.float32)

    if hasattr(part, "layer_norm"):
        norm(part.layer_norm)
    for layer in part.layer:
        linear(layer.self_attention.linear[0], 3 * width, width, bias=False)  # as OpenNMT without add_qkvbias
        linear(layer.self_attention.linear[1], width, width)
        norm(layer.self_attention.layer_norm)
        if hasattr(layer, "attention"):
            for index, out in enumerate((width, 2 * width, width)):
                linear(layer.attention.linear[index], out, width)
            norm(layer.attention.layer_norm)
        linear(layer.ffn.linear_0, 48, width)
        linear(layer.ffn.linear_1, width, 48)
        norm(layer.ffn.layer_norm)


def argos_package(folder: Path, quantization: str | None = None, **changes: Any) -> Path:
    """A package as Argos distributes models of OpenNMT: two vocabularies or a shared one, no end after the source."""
    options = {"pre_norm": True, "shared": False, "epsilon": 1e-6, "start": "<s>", "special": ["<unk>", "<blank>"]}
    options |= changes
    (folder / "model").mkdir(parents=True)
    pieces = pieces_of(folder, "sentencepiece.model", f"{TEXT}\n{TEXT.upper()}", 90)
    special = [*options["special"], "<s>", "</s>"]
    source = [*special, *pieces]
    target = source if options["shared"] else [*special, *reversed(pieces), "<extra>"]
    draw = np.random.default_rng(5)
    shape = {"pre_norm": options["pre_norm"], "activation": specs.Activation.RELU}
    encoder = specs.TransformerEncoderSpec(2, 4, **shape)
    decoder = specs.TransformerDecoderSpec(1, 4, **shape)
    fill(encoder, draw)
    fill(decoder, draw)
    encoder.position_encodings.encodings = decoder.position_encodings.encodings = sinusoids(100, 32)
    encoder.embeddings[0].weight = draw.normal(size=(len(source), 32)).astype(np.float32) * 0.2
    table = encoder.embeddings[0].weight
    decoder.embeddings.weight = (
        table if options["shared"] else draw.normal(size=(len(target), 32)).astype(np.float32) * 0.2
    )
    decoder.projection.weight = decoder.embeddings.weight
    decoder.projection.bias = draw.normal(size=len(target)).astype(np.float32)
    spec = specs.TransformerSpec(encoder, decoder)
    spec.config.layer_norm_epsilon = options["epsilon"]
    spec.config.decoder_start_token = options["start"]
    spec.config.add_source_eos = options["start"] == "</s>"
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder / "model"))
    (folder / "metadata.json").write_text(json.dumps({"from_code": "en", "to_code": "de", "package_version": "1.0"}))
    return folder


def tokens_of(folder: Path) -> list[str]:
    (file,) = (path for path in folder.glob("*_vocabulary.json") if not path.name.startswith("source"))
    return json.loads(file.read_text(encoding="utf-8"))


def check_same(folder: Path, spm: Path, ours: Path, *, end: bool = False, tolerance: float = 1e-4) -> None:
    """Equal log-probabilities of given targets, and equal greedy translations, of text as its own tools split it.

    `end`: whoever uses the model has to put the end of sentence after the source.
    """
    engine = ctranslate2.Translator(str(folder), compute_type="float32")
    split = sentencepiece.SentencePieceProcessor(model_file=str(spm))
    _, model, pair = open_model(ours)
    texts = sentences(50)
    sources = [split.encode(text, out_type=str) + ["</s>"] * end for text in texts]
    wanted = [pair.target.pieces(pair.target.encode(text.upper()))[:9] for text in texts]
    ids = [[pair.target.vocabulary.index(token) for token in target] for target in wanted]
    found = TorchEngine(model).score([pair.source.encode(text) for text in texts], ids)
    for one, other in zip(engine.score_batch(sources, wanted), found, strict=True):
        np.testing.assert_allclose(one.log_probs, other, atol=tolerance, rtol=tolerance)
    never = [[token] for token in ("<unk>", "<blank>", "<s>") if token in tokens_of(folder)]
    limits = {"max_decoding_length": 6, "min_decoding_length": 0}
    greedy = engine.translate_batch(sources, beam_size=1, suppress_sequences=never, **limits)
    translator = headwise.load(ours, engine="torch")
    for text, expected in zip(texts, greedy, strict=True):
        (translation,) = translator.translate([text], beam=1, max_extra=6)
        tokens = [pair.target.vocabulary[number] for number in translation.ids[:6]]
        kept = len(tokens) if translation.stopped == "loop" else 6  # random models repeat themselves
        assert tokens == expected.hypotheses[0][:kept]


@pytest.mark.parametrize(
    "changes",
    [
        {}, {"shared": True}, {"pre_norm": False}, {"start": "</s>"}, {"special": ["<unk>"]},
        {"shared": True, "start": "</s>", "special": ["<unk>"], "epsilon": 1e-5},
    ],
    ids=str,
)  # fmt: skip
def test_a_package_of_argos_computes_the_same(tmp_path: Path, changes: dict[str, Any]) -> None:
    package = argos_package(tmp_path / "package", **changes)
    import_model(package, tmp_path / "ours")
    bundle = open_bundle(tmp_path / "ours")
    assert bundle.languages == ("en", "de")
    assert bundle.architecture["tie"] == ("all" if changes.get("shared") else "target")
    check_same(package / "model", package / "sentencepiece.model", tmp_path / "ours")


@pytest.mark.parametrize(("quantization", "tolerance"), [("float16", 2e-3), ("int8", 1e-4), ("int16", 1e-4)])
def test_smaller_types_are_the_numbers_that_ctranslate2_computes_with(
    tmp_path: Path, quantization: str, tolerance: float
) -> None:
    package = argos_package(tmp_path / "package", quantization)
    import_model(package, tmp_path / "ours")
    check_same(package / "model", package / "sentencepiece.model", tmp_path / "ours", tolerance=tolerance)


def test_a_converted_marian_computes_the_same(tmp_path: Path) -> None:
    """As CTranslate2's own converter makes it of a model of the Hub: its decoder starts with zeros."""
    publish_marian(tmp_path / "hub")
    converter = ctranslate2.converters.TransformersConverter(str(tmp_path / "hub"))
    converter.convert(str(tmp_path / "converted"))
    for name in ("source.spm", "target.spm"):
        shutil.copyfile(tmp_path / "hub" / name, tmp_path / "converted" / name)
    import_model(tmp_path / "converted", tmp_path / "ours")
    check_same(tmp_path / "converted", tmp_path / "converted" / "source.spm", tmp_path / "ours", end=True)
    import_model(tmp_path / "hub", tmp_path / "other")
    texts = sentences(20)
    one, other = (headwise.load(tmp_path / name, engine="torch") for name in ("ours", "other"))
    found = [[t.text for t in model.translate(texts, beam=4, max_extra=3)] for model in (one, other)]
    assert found[0] == found[1]


def test_an_imported_package_gives_the_same_in_both_engines(tmp_path: Path) -> None:
    import_model(argos_package(tmp_path / "package"), tmp_path / "ours")
    found = []
    for engine, options in (("torch", {}), ("ctranslate2", {"precision": "float32"})):
        translator = headwise.load(tmp_path / "ours", engine=engine, **options)
        found.append([t.ids for t in translator.translate([*sentences(20), ""], beam=1, max_extra=2)])
    assert found[0] == found[1]

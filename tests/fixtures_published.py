"""Small published models, as `transformers` writes them, with tokenizers of their own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
from fetch_published import PUBLISHED
from tokenizers import decoders, models, pre_tokenizers, trainers
from torch import nn

TEXT = "the quick brown fox jumps over the lazy dog\nand then it sleeps, again and again; 12 birds sing éèü 你好\n" * 20
END = "<|endoftext|>"


def randomised(model: nn.Module) -> nn.Module:
    """Biases and norms start at constants, which would hide a swap; small weights would hide everything else."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def byte_level_bpe(size: int) -> tokenizers.Tokenizer:
    """A tokenizer of GPT-2's kind: the end of a text is its last token."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size - 1, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.add_special_tokens([END])
    return tokenizer


def publish_gpt2(folder: Path, seed: int = 0, **changes: Any) -> Any:
    """A random GPT-2 with its tokenizer.json; returns the model of `transformers`."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    tokenizer = byte_level_bpe(300)
    vocab = tokenizer.get_vocab_size()
    sizes = {"n_positions": 64, "n_embd": 48, "n_layer": 2, "n_head": 4, "vocab_size": vocab, **changes}
    end = tokenizer.token_to_id(END)
    model = randomised(GPT2LMHeadModel(GPT2Config(bos_token_id=end, eos_token_id=end, **sizes)))
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return model


@pytest.fixture
def real_models() -> Path:
    """The folder of real published models, from HEADWISE_MODELS."""
    folder = os.environ.get("HEADWISE_MODELS")
    if not folder or not Path(folder).is_dir():
        pytest.skip("no published models: set HEADWISE_MODELS to their folder")
    return Path(folder)


def _fetched(variable: str, name: str, file: str) -> Path:
    """A real model from PyPI: the folder that the variable names, or the one that `make published` makes."""
    folder = Path(os.environ.get(variable) or PUBLISHED / name)
    if not (folder / file).is_file():
        pytest.skip(f"no {name}: run `make published`, or set {variable} to its folder")
    return folder


@pytest.fixture
def minilm() -> Path:
    """MiniLM-L6, a BERT for sentence vectors, with sentence-transformers' files."""
    return _fetched("HEADWISE_MINILM", "minilm", "model.safetensors")


@pytest.fixture
def whisper_tiny() -> Path:
    """Whisper tiny.en as a directory of CTranslate2."""
    return _fetched("HEADWISE_WHISPER", "whisper-tiny.en", "model.bin")


@pytest.fixture
def pickled_bert() -> Path:
    """A BERT whose weights are a pickle."""
    return _fetched("HEADWISE_PICKLED_BERT", "pickled-bert", "pytorch_model.bin")


def publish_marian(folder: Path, seed: int = 0, separate: bool = False, **changes: Any) -> Any:
    """A random MarianMT with its SentencePiece files; returns the model of `transformers`.

    `separate`: source and target have a vocabulary each.
    """
    import io

    import sentencepiece
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(seed)
    folder.mkdir(exist_ok=True)
    begin = {"</s>": 0, "<unk>": 1, **({"<pad>": 2} if separate else {})}
    vocabularies = [dict(begin), dict(begin)] if separate else [begin] * 2
    for (side, size), vocabulary in zip((("source", 60), ("target", 70)), vocabularies, strict=True):
        model = io.BytesIO()
        lines = iter(TEXT.split("\n") if side == "source" else TEXT.upper().split("\n"))
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=lines, model_writer=model, vocab_size=size, hard_vocab_limit=False, minloglevel=9
        )
        (folder / f"{side}.spm").write_bytes(model.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        for number in range(processor.get_piece_size()):
            if not processor.is_control(number) and not processor.is_unknown(number):
                vocabulary.setdefault(processor.id_to_piece(number), len(vocabulary))
    described: dict[str, Any] = {"source_lang": "en", "target_lang": "fr", "separate_vocabs": separate}
    if not separate:
        vocabularies[0][">>fra<<"] = len(vocabularies[0])
        vocabularies[0]["<pad>"] = len(vocabularies[0])
    else:
        vocabularies[1]["<more>"] = len(vocabularies[1])
        (folder / "target_vocab.json").write_text(json.dumps(vocabularies[1]))
    pad = vocabularies[1]["<pad>"]
    (folder / "vocab.json").write_text(json.dumps(vocabularies[0]))
    (folder / "tokenizer_config.json").write_text(json.dumps(described))
    sizes = {
        "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64,
        "scale_embedding": True, "activation_function": "swish", **changes,
    }  # fmt: skip
    config = MarianConfig(
        vocab_size=len(vocabularies[0]), decoder_vocab_size=len(vocabularies[1]), pad_token_id=pad,
        decoder_start_token_id=pad, eos_token_id=0, bos_token_id=0, forced_eos_token_id=0,
        share_encoder_decoder_embeddings=not separate, **sizes,
    )  # fmt: skip
    published = randomised(MarianMTModel(config))
    with torch.no_grad():
        for stack in (published.get_encoder(), published.get_decoder()):
            stack.embed_tokens.weight[pad] = 0.0
        published.final_logits_bias.normal_()
    published.save_pretrained(folder)
    return MarianMTModel.from_pretrained(folder).eval()  # with its positions as they are: they are not in the file


def publish_vit(folder: Path, seed: int = 0, classifies: bool = True, **changes: Any) -> Any:
    """A random ViT with its preprocessor_config.json; returns the model of `transformers`."""
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessorPil, ViTModel

    torch.manual_seed(seed)
    sizes = {
        "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48,
        "image_size": 32, "patch_size": 8, "num_labels": 7, **changes,
    }  # fmt: skip
    model = randomised((ViTForImageClassification if classifies else ViTModel)(ViTConfig(**sizes)))
    model.save_pretrained(folder)  # type: ignore[operator]
    ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    return model


def publish_bert(folder: Path, kind: str = "BertModel", seed: int = 0, **changes: Any) -> Any:
    """A random BERT of one class with a WordPiece tokenizer.json; returns the model of `transformers`."""
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    torch.manual_seed(seed)
    special = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(TEXT.split("\n"), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 3), ("[SEP]", 4)]
    )
    sizes = {
        "vocab_size": tokenizer.get_vocab_size(), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 48, "max_position_embeddings": 40, **changes,
    }  # fmt: skip
    model = randomised(getattr(transformers, kind)(transformers.BertConfig(**sizes)))
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    roles = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **{f"{role}_token": name for role, name in roles.items()}}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return model


def as_marian_files(hub: Path, folder: Path) -> None:
    """The same model in Marian's own files: arrays under its names, without the token that the Hub adds."""
    import json
    import re
    import shutil

    import numpy as np
    from safetensors.numpy import load_file

    folder.mkdir()
    config, weights = json.loads((hub / "config.json").read_text()), load_file(hub / "model.safetensors")
    kinds = {"weight": "W", "bias": "b"}
    pad, separate = config["pad_token_id"], not config["share_encoder_decoder_embeddings"]
    tables = {"Wemb": "shared"} if not separate else {f"{s}_Wemb": f"{s}.embed_tokens" for s in ("encoder", "decoder")}
    arrays = {name: np.delete(weights[f"model.{there}.weight"], pad, axis=0) for name, there in tables.items()}
    arrays["decoder_ff_logit_out_b"] = np.delete(weights["final_logits_bias"], pad, axis=1)
    for name, value in weights.items():
        found = re.fullmatch(r"model\.(encoder|decoder)\.layers\.(\d+)\.(\w+)\.?(\w+)?\.(weight|bias)", name)
        if found is None:
            continue
        stack, layer, block, part, kind = found.groups()
        place = f"{stack}_l{int(layer) + 1}"
        side = "context" if block.startswith("encoder_attn") else "self"
        if block.endswith("_layer_norm"):
            scope = "ffn_ffn" if block == "final_layer_norm" else f"{side}_Wo"
            arrays[f"{place}_{scope}_ln_{'scale' if kind == 'weight' else 'bias'}"] = value[None]
        else:
            ending = block[-1] if block.startswith("fc") else part[0]
            scope = "ffn" if block.startswith("fc") else side
            arrays[f"{place}_{scope}_{kinds[kind]}{ending}"] = value.T if kind == "weight" else value[None]
    settings = {
        "type": "transformer", "dim-emb": config["d_model"], "enc-depth": config["encoder_layers"],
        "dec-depth": config["decoder_layers"], "transformer-heads": config["encoder_attention_heads"],
        "transformer-dim-ffn": config["encoder_ffn_dim"], "transformer-ffn-activation": config["activation_function"],
        "transformer-preprocess": '""', "transformer-postprocess": "dan", "transformer-postprocess-emb": "d",
        "tied-embeddings-all": "false" if separate else "true", "tied-embeddings": "true" if separate else "false",
        "tied-embeddings-src": "false", "transformer-decoder-autoreg": "self-attention",
        "transformer-no-projection": "false", "transformer-guided-alignment-layer": "last",
    }  # fmt: skip
    text = "dim-vocabs:\n  - 9\n  - 9\n" + "".join(f"{name}: {value}\n" for name, value in settings.items())
    arrays["special:model.yml"] = np.frombuffer(text.encode() + b"\0", dtype=np.int8)
    np.savez(folder / "model.npz", **arrays)
    written = {"vocab.json": "opus.src.vocab.yml", "target_vocab.json": "opus.trg.vocab.yml"}
    for theirs, name in written.items() if separate else [("vocab.json", "opus.vocab.yml")]:
        tokens = [token for token in json.loads((hub / theirs).read_text()) if token != "<pad>"]
        lines = (f"{token}: {n}\n" if '"' in token else f'"{token}": {n}\n' for n, token in enumerate(tokens))
        (folder / name).write_text("".join(lines), encoding="utf-8")
    for name in ("source.spm", "target.spm"):
        shutil.copyfile(hub / name, folder / name)


def publish_t5(folder: Path, seed: int = 0, **changes: Any) -> Any:
    """A random T5 with its SentencePiece file; returns the model of `transformers`."""
    import io

    import sentencepiece
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(seed)
    folder.mkdir(exist_ok=True)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT.split("\n")), model_writer=model, vocab_size=60, hard_vocab_limit=False,
        minloglevel=9, pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
    )  # fmt: skip
    (folder / "spiece.model").write_bytes(model.getvalue())
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).get_piece_size()
    rows = pieces + 100 + 8  # sentinels, and rows that no token has
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, **changes}
    published: Any = T5ForConditionalGeneration(T5Config(vocab_size=rows, decoder_start_token_id=0, **sizes))
    if not published.config.scale_decoder_outputs:  # the library ties what is published untied
        published.lm_head.weight = nn.Parameter(torch.randn(rows, 32) * 32**-0.5)
    randomised(published)
    published.save_pretrained(folder)
    return published


def publish_long(folder: Path, kind: str, seed: int = 0, **changes: Any) -> Any:
    """A random Longformer or BigBird of one class, with a tokenizer of its kind."""
    import transformers
    from tokenizers import processors

    torch.manual_seed(seed)
    roberta = kind.startswith("Longformer")
    special = ["<s>", "<pad>", "</s>", "<unk>"] if roberta else ["<pad>", "</s>", "<s>", "<unk>", "[CLS]", "[SEP]"]
    begin, end, mask = ("<s>", "</s>", "<mask>") if roberta else ("[CLS]", "[SEP]", "[MASK]")
    if roberta:
        tokenizer = tokenizers.Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer: Any = trainers.BpeTrainer(
            vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        )
    else:
        tokenizer = tokenizers.Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=90, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(TEXT.split("\n"), trainer)
    tokenizer.add_special_tokens([tokenizers.AddedToken(mask, lstrip=True, normalized=False, special=True)])
    ids = {name: tokenizer.token_to_id(name) for name in (*special, mask)}
    if roberta:
        tokenizer.post_processor = processors.RobertaProcessing((end, ids[end]), (begin, ids[begin]))
    else:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{begin} $A {end}", pair=f"{begin} $A {end} $B:1 {end}:1",
            special_tokens=[(begin, ids[begin]), (end, ids[end])],
        )  # fmt: skip
    sizes = {
        "vocab_size": tokenizer.get_vocab_size(), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 48, "pad_token_id": ids["<pad>"], "bos_token_id": ids["<s>"], "eos_token_id": ids["</s>"],
        "sep_token_id": ids[end], **changes,
    }  # fmt: skip
    config: Any
    if roberta:
        config = transformers.LongformerConfig(
            attention_window=8, max_position_embeddings=202, type_vocab_size=1, layer_norm_eps=1e-5, **sizes
        )
    else:
        config = transformers.BigBirdConfig(block_size=4, num_random_blocks=2, max_position_embeddings=200, **sizes)
    model = randomised(getattr(transformers, kind)(config))
    model.save_pretrained(folder)  # type: ignore[operator]
    tokenizer.save(str(folder / "tokenizer.json"))
    roles = {"pad": "<pad>", "unk": "<unk>", "cls": begin, "sep": end, "mask": mask}
    described = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{f"{role}_token": name for role, name in roles.items()},
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(described))
    return model

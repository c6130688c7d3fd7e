"""Headwise: the Transformer of 'Attention Is All You Need' as a working tool.

Names are loaded when first used: `import headwise` alone does not import torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from headwise.errors import HeadwiseError

if TYPE_CHECKING:
    from headwise import nn
    from headwise.decoding.generation import Generation
    from headwise.decoding.translator import Translation
    from headwise.losses import label_smoothed_cross_entropy
    from headwise.models.bert import Bert
    from headwise.models.bigbird import BigBird
    from headwise.models.lm import LanguageModel
    from headwise.models.longformer import Longformer
    from headwise.models.performer import Performer
    from headwise.models.recurrent import RecurrentSeq2Seq
    from headwise.models.t5 import T5
    from headwise.models.transformer import Transformer
    from headwise.models.vit import ViT
    from headwise.models.whisper import Whisper
    from headwise.models.xl import TransformerXL
    from headwise.tasks.classifier import Classification, Classifier
    from headwise.tasks.embedder import Embedder
    from headwise.tasks.filler import Filler
    from headwise.tasks.generator import Generator
    from headwise.tasks.translate import Translator
    from headwise.text.tokenizer import Tokenizer
    from headwise.workflows.load import load
    from headwise.workflows.save import save
    from headwise.workflows.train_from_python import train

__version__ = "0.1.0"
__all__ = [
    "T5",
    "Bert",
    "BigBird",
    "Classification",
    "Classifier",
    "Embedder",
    "Filler",
    "Generation",
    "Generator",
    "HeadwiseError",
    "LanguageModel",
    "Longformer",
    "Performer",
    "RecurrentSeq2Seq",
    "Tokenizer",
    "Transformer",
    "TransformerXL",
    "Translation",
    "Translator",
    "ViT",
    "Whisper",
    "label_smoothed_cross_entropy",
    "load",
    "nn",
    "save",
    "train",
]

# A public name and where it lives; an empty attribute means the module itself.
_LAZY = {
    "nn": ("headwise.nn", ""),
    "Transformer": ("headwise.models.transformer", "Transformer"),
    "TransformerXL": ("headwise.models.xl", "TransformerXL"),
    "LanguageModel": ("headwise.models.lm", "LanguageModel"),
    "Bert": ("headwise.models.bert", "Bert"),
    "Longformer": ("headwise.models.longformer", "Longformer"),
    "BigBird": ("headwise.models.bigbird", "BigBird"),
    "Performer": ("headwise.models.performer", "Performer"),
    "RecurrentSeq2Seq": ("headwise.models.recurrent", "RecurrentSeq2Seq"),
    "T5": ("headwise.models.t5", "T5"),
    "ViT": ("headwise.models.vit", "ViT"),
    "Whisper": ("headwise.models.whisper", "Whisper"),
    "load": ("headwise.workflows.load", "load"),
    "save": ("headwise.workflows.save", "save"),
    "train": ("headwise.workflows.train_from_python", "train"),
    "Tokenizer": ("headwise.text.tokenizer", "Tokenizer"),
    "Translator": ("headwise.tasks.translate", "Translator"),
    "Translation": ("headwise.decoding.translator", "Translation"),
    "Generator": ("headwise.tasks.generator", "Generator"),
    "Generation": ("headwise.decoding.generation", "Generation"),
    "Classifier": ("headwise.tasks.classifier", "Classifier"),
    "Embedder": ("headwise.tasks.embedder", "Embedder"),
    "Filler": ("headwise.tasks.filler", "Filler"),
    "Classification": ("headwise.tasks.classifier", "Classification"),
    "label_smoothed_cross_entropy": ("headwise.losses", "label_smoothed_cross_entropy"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'headwise' has no attribute '{name}'")
    module, attribute = _LAZY[name]
    loaded = importlib.import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

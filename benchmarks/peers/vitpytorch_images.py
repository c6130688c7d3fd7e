"""vit-pytorch's ViT with the usual loops around it, run by benchmarks/images.py.

Its package imports torchvision, which this class does not use; so the class is taken from its file.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from measure_images import MEAN, STD, Classify, Step, main, plain_step
from PIL import Image
from torch.utils.data import DataLoader, Dataset

PROCESSES = 2  # that read pictures


def vit(request: dict) -> torch.nn.Module:
    package = importlib.util.find_spec("vit_pytorch")
    spec = importlib.util.spec_from_file_location("vit", Path(package.origin).with_name("vit.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sizes = request["sizes"]
    return module.ViT(
        image_size=sizes["image_size"], patch_size=sizes["patch_size"], channels=sizes["channels"],
        num_classes=sizes["classes"], dim=sizes["model_dim"], depth=sizes["layers"], heads=sizes["num_heads"],
        dim_head=sizes["model_dim"] // sizes["num_heads"], mlp_dim=sizes["ff_dim"], dropout=sizes["dropout"],
        emb_dropout=sizes["dropout"],
    )  # fmt: skip


def build(request: dict) -> tuple[Step, torch.nn.Module]:
    model = vit(request).train()
    return plain_step(model, model), model


class Files(Dataset):
    """Pictures of their final size."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, number: int) -> torch.Tensor:
        pixels = np.asarray(Image.open(self.names[number]).convert("L"), dtype=np.float32)
        return torch.from_numpy((pixels / 255 - MEAN) / STD)[None]


def prepare(request: dict) -> tuple[Classify, torch.nn.Module]:
    model = vit(request).eval()

    @torch.inference_mode()
    def classify(names: Sequence[str]) -> list[int]:
        found: list[int] = []
        for pixels in DataLoader(Files(names), request["batch"], num_workers=PROCESSES):
            found += model(pixels).softmax(dim=-1).argmax(dim=-1).tolist()
        return found

    return classify, model


if __name__ == "__main__":
    main(build, prepare)

"""Hugging Face's ViT with SDPA attention and its image processor, run by benchmarks/images.py."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from measure_images import MEAN, STD, Classify, Step, main, plain_step
from PIL import Image
from transformers import ViTConfig, ViTForImageClassification
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil


def vit(request: dict) -> ViTForImageClassification:
    sizes = request["sizes"]
    config = ViTConfig(
        image_size=sizes["image_size"], patch_size=sizes["patch_size"], num_channels=sizes["channels"],
        hidden_size=sizes["model_dim"], num_hidden_layers=sizes["layers"], num_attention_heads=sizes["num_heads"],
        intermediate_size=sizes["ff_dim"], hidden_dropout_prob=sizes["dropout"],
        attention_probs_dropout_prob=sizes["dropout"], num_labels=sizes["classes"], attn_implementation="sdpa",
    )  # fmt: skip
    model = ViTForImageClassification(config)
    assert model.config._attn_implementation == "sdpa"
    return model


def build(request: dict) -> tuple[Step, torch.nn.Module]:
    model = vit(request).train()
    return plain_step(model, lambda pixels: model(pixel_values=pixels).logits), model


def prepare(request: dict) -> tuple[Classify, torch.nn.Module]:
    model, size = vit(request).eval(), request["sizes"]["image_size"]
    processor = ViTImageProcessorPil(size={"height": size, "width": size}, image_mean=[MEAN], image_std=[STD])

    @torch.inference_mode()
    def classify(names: Sequence[str]) -> list[int]:
        found: list[int] = []
        for start in range(0, len(names), request["batch"]):
            pictures = [Image.open(name).convert("L") for name in names[start : start + request["batch"]]]
            logits = model(**processor(pictures, return_tensors="pt")).logits
            found += logits.softmax(dim=-1).argmax(dim=-1).tolist()
        return found

    return classify, model


if __name__ == "__main__":
    main(build, prepare)

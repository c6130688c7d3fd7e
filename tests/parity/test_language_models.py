"""The language model computes what other libraries' do, with the same weights."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from headwise.config.families.lm import FAMILY
from headwise.models.lm import LanguageModel
from headwise.nn import AdaptiveEmbedding, EncoderLayer, sinusoidal_positions


def randomised(model: nn.Module) -> None:
    """Biases and norms start at constants, which would hide a swap."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)


def copy_layer(ours: EncoderLayer, theirs: nn.Module) -> None:
    theirs.self_attn.in_proj_weight.copy_(ours.self_attention.query_key_value.weight)
    theirs.self_attn.in_proj_bias.copy_(ours.self_attention.query_key_value.bias)
    theirs.self_attn.out_proj.load_state_dict(ours.self_attention.output.state_dict())
    theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
    theirs.norm1.load_state_dict(ours.self_residual.norm.state_dict())
    theirs.norm2.load_state_dict(ours.feed_residual.norm.state_dict())


@pytest.mark.parametrize(("norm", "activation"), [("post", "relu"), ("pre", "gelu")])
def test_it_is_torchs_encoder_with_a_causal_mask_forward_and_backward(norm: str, activation: str) -> None:
    torch.manual_seed(1)
    ours = LanguageModel(
        vocab=40, model_dim=24, num_heads=3, layers=3, ff_dim=50, dropout=0.0, norm=norm, activation=activation
    )
    randomised(ours)
    layer = nn.TransformerEncoderLayer(
        24, 3, 50, dropout=0.0, activation=activation, batch_first=True, norm_first=norm == "pre"
    )
    final = nn.LayerNorm(24) if norm == "pre" else None
    theirs = nn.TransformerEncoder(layer, 3, final, enable_nested_tensor=False)
    with torch.no_grad():
        for our, their in zip(ours.stack.layers, theirs.layers, strict=True):
            copy_layer(our, their)
        if final is not None:
            theirs.norm.load_state_dict(ours.stack.norm.state_dict())
    table = ours.embedding.weight.detach().clone().requires_grad_()
    ids, hidden = torch.randint(0, 40, (4, 11)), torch.triu(torch.ones(11, 11, dtype=torch.bool), diagonal=1)
    x = table[ids] * 24**0.5 + sinusoidal_positions(11, 24)
    expected = theirs(x, mask=hidden, is_causal=True) @ table.T
    found = ours(ids)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    weights = torch.randn_like(found)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(ours.embedding.weight.grad, table.grad, atol=1e-4, rtol=1e-4)
    first_ours, first_theirs = ours.stack.layers[0], theirs.layers[0]
    torch.testing.assert_close(
        first_ours.self_attention.query_key_value.weight.grad, first_theirs.self_attn.in_proj_weight.grad,
        atol=1e-4, rtol=1e-4,
    )  # fmt: skip


@torch.no_grad()
def copy_from_gpt2(ours: LanguageModel, theirs: nn.Module) -> None:
    """Hugging Face stores the transpose of each matrix of a block."""
    ours.embedding.weight.copy_(theirs.transformer.wte.weight)
    ours.positions.weight.copy_(theirs.transformer.wpe.weight)
    ours.stack.norm.load_state_dict(theirs.transformer.ln_f.state_dict())
    for our, their in zip(ours.stack.layers, theirs.transformer.h, strict=True):
        our.self_residual.norm.load_state_dict(their.ln_1.state_dict())
        our.feed_residual.norm.load_state_dict(their.ln_2.state_dict())
        for linear, transposed in (
            (our.self_attention.query_key_value, their.attn.c_attn),
            (our.self_attention.output, their.attn.c_proj),
            (our.feed_forward.inner, their.mlp.c_fc),
            (our.feed_forward.outer, their.mlp.c_proj),
        ):
            linear.weight.copy_(transposed.weight.T)
            linear.bias.copy_(transposed.bias)


def test_the_gpt2_preset_is_hugging_faces_gpt2() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(2)
    sizes = {**FAMILY.presets["gpt2"], "model_dim": 48, "num_heads": 4, "layers": 3, "ff_dim": 192, "max_length": 32}
    ours = LanguageModel(vocab=90, **sizes).eval()
    theirs = GPT2LMHeadModel(GPT2Config(vocab_size=90, n_positions=32, n_embd=48, n_layer=3, n_head=4)).eval()
    randomised(theirs)
    copy_from_gpt2(ours, theirs)
    ids = torch.randint(0, 90, (3, 32))
    with torch.no_grad():
        torch.testing.assert_close(ours(ids), theirs(ids).logits, atol=1e-4, rtol=1e-4)
    # … and written on greedily, ours by its cache and theirs by its own.
    state = ours.start()
    tokens, said = ids[:, :5], ids[:, :5]
    with torch.no_grad():
        for _ in range(12):
            tokens = ours.output.logits(ours.advance(state, tokens)).argmax(dim=-1)
            said = torch.cat((said, tokens[:, None]), dim=1)
        expected = theirs.generate(ids[:, :5], max_new_tokens=12, do_sample=False, pad_token_id=0, eos_token_id=None)
    assert said.tolist() == expected.tolist()


def adaptive_twins(vocab: int, width: int, cutoffs: list[int]) -> tuple[AdaptiveEmbedding, nn.Module]:
    ours = AdaptiveEmbedding(vocab, width, cutoffs)
    theirs = nn.AdaptiveLogSoftmaxWithLoss(width, vocab, cutoffs, div_value=4.0)
    with torch.no_grad():
        theirs.head.weight.copy_(torch.cat((ours.tables[0], ours.clusters)))
        for number, (projection, matrix) in enumerate(theirs.tail):
            projection.weight.copy_(ours.projections[number])
            matrix.weight.copy_(ours.tables[number + 1])
    return ours, theirs


def gradients(module: nn.Module, loss: Tensor, states: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, [states, *module.parameters()], retain_graph=True, materialize_grads=True))


@pytest.mark.parametrize("cutoffs", [[7], [10, 30], [5, 20, 60]])
def test_the_adaptive_softmax_is_torchs(cutoffs: list[int]) -> None:
    torch.manual_seed(3)
    ours, theirs = adaptive_twins(100, 64, cutoffs)
    states, targets = torch.randn(200, 64, requires_grad=True), torch.randint(0, 100, (200,))
    torch.testing.assert_close(ours.logits(states), theirs.log_prob(states))
    total, log_loss = ours.loss(states, targets)
    expected = -theirs(states, targets).output.sum()
    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(log_loss, expected)
    by_ours, by_theirs = gradients(ours, total, states), gradients(theirs, expected, states)
    torch.testing.assert_close(by_ours[0], by_theirs[0])
    # Tables, projections and clusters are tied to the input: its part is not in this loss, so they can be compared.
    named = dict(zip([name for name, _ in ours.named_parameters()], by_ours[1:], strict=True))
    head = torch.cat((named["tables.0"], named["clusters"]))
    torch.testing.assert_close(
        head, dict(zip([n for n, _ in theirs.named_parameters()], by_theirs[1:], strict=True))["head.weight"]
    )

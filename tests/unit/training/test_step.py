from __future__ import annotations

import copy

import pytest
import torch

import headwise as hw
from headwise.config.schema import Training
from headwise.data.batch import Batch
from headwise.data.pairs import pair_batch
from headwise.losses import BatchLoss, batch_loss
from headwise.models.interface import Network
from headwise.text.ragged import Ragged
from headwise.training.optimizers import build_optimizer
from headwise.training.step import Updater, share_seed


def ragged(generator: torch.Generator, rows: int, vocab: int) -> Ragged:
    lengths = torch.randint(1, 12, (rows,), generator=generator).numpy()
    tokens = torch.randint(4, vocab, (int(lengths.sum()),), generator=generator).numpy()
    return Ragged(tokens, lengths)


def batch(rows: int = 40, vocab: int = 50) -> Batch:
    generator = torch.Generator().manual_seed(0)
    return pair_batch(ragged(generator, rows, vocab), ragged(generator, rows, vocab))


def model(dropout: float = 0.0) -> hw.Transformer:
    torch.manual_seed(0)
    return hw.Transformer(
        source_vocab=50, model_dim=32, num_heads=4, encoder_layers=1, decoder_layers=1, ff_dim=32, dropout=dropout
    ).train()


def updater(network: hw.Transformer, **options: object) -> Updater:
    settings = Training(optimizer="sgd", learning_rate=1.0)
    return Updater(network, build_optimizer(settings, network.parameters()), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("rounds", "workers"), [(2, 1), (4, 1), (7, 1), (1, 2), (1, 3), (3, 2)])
def test_an_update_in_shares_equals_the_update_in_one(rounds: int, workers: int) -> None:
    one, many = model(), model()
    whole = updater(one, smoothing=0.1)(batch(), 0.1)
    split = updater(many, smoothing=0.1, accumulate=rounds, workers=workers)(batch(), 0.1)
    assert split.loss == pytest.approx(whole.loss, abs=1e-6)
    assert split.tokens == whole.tokens
    for a, b in zip(one.parameters(), many.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)


def test_the_loss_is_a_mean_over_targets_and_padding_does_not_count() -> None:
    network, one = model(), batch()
    update = updater(network, smoothing=0.1)(one, 0.0)
    network = model()
    logits = network(*one.inputs)
    total, count = hw.label_smoothed_cross_entropy(logits, one.targets, 0.1)
    assert update.loss == pytest.approx((total / count).item(), rel=1e-5)
    plain, _ = hw.label_smoothed_cross_entropy(logits, one.targets, 0.0)
    assert update.log_loss == pytest.approx((plain / count).item(), rel=1e-5)
    assert update.tokens == count == one.tokens


def test_clipping_bounds_the_norm_and_keeps_the_direction() -> None:
    free, bound = model(), model()
    before = copy.deepcopy(free.state_dict())
    norm = updater(free)(batch(), 1.0).norm
    assert updater(bound, clip_norm=norm / 10)(batch(), 1.0).norm == pytest.approx(norm)
    for name, value in free.named_parameters():
        torch.testing.assert_close(
            (bound.get_parameter(name) - before[name]) * 10, value - before[name], atol=1e-4, rtol=1e-3
        )


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_nan_or_infinite_gradient_is_not_learned_from(bad: float) -> None:
    network = model()
    step = updater(network)
    before = copy.deepcopy(network.state_dict())
    handle = network.encoder.layers[0].feed_forward.register_full_backward_hook(lambda m, i, o: (i[0] * bad,))
    update = step(batch(), 0.1)
    assert update.skipped
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    handle.remove()
    assert not step(batch(), 0.1).skipped


@pytest.mark.parametrize("workers", [1, 2])
def test_runs_with_one_seed_are_bit_identical_whichever_thread_is_first(workers: int) -> None:
    def weights(seed: int) -> list[torch.Tensor]:
        network = model(dropout=0.3)
        step = updater(network, smoothing=0.1, workers=workers, seed=seed)
        for number in range(1, 6):
            step(batch(), 0.1, number)
        return [p.detach() for p in network.parameters()]

    first = weights(1)
    for _ in range(3):
        assert all(torch.equal(a, b) for a, b in zip(first, weights(1), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, weights(2), strict=True))


def test_every_update_and_share_draws_other_masks() -> None:
    seeds = {share_seed(seed, step, share) for seed in range(5) for step in range(20) for share in range(4)}
    assert len(seeds) == 5 * 20 * 4


def test_the_loss_is_the_one_that_the_task_gives() -> None:
    def doubled(network: Network, batch: Batch, smoothing: float) -> BatchLoss:
        plain = batch_loss(network, batch, smoothing)
        return BatchLoss(2 * plain.total, plain.log_loss, plain.count)

    plain, twice = updater(model())(batch(), 0.0), updater(model(), loss=doubled)(batch(), 0.0)
    assert twice.loss == pytest.approx(2 * plain.loss, rel=1e-6)
    assert twice.norm == pytest.approx(2 * plain.norm, rel=1e-5)
    assert twice.log_loss == pytest.approx(plain.log_loss, rel=1e-6)

"""From logits or states to a loss: always a sum and the count of targets, so that one update divides once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headwise.data.batch import Batch
from headwise.errors import ShapeError
from headwise.models.interface import Network
from headwise.nn.kernels.projected_loss import projected_loss

_ROWS = 256  # whose logits over a vocabulary are held at a time


@dataclass(frozen=True)
class BatchLoss:
    """Sums over the targets of the objective and of the plain log-loss (no gradient), and the number of targets."""

    total: Tensor
    log_loss: Tensor
    count: int
    answers: Tensor | None = None  # outside of training: the likeliest class of each target, where a task asks for it
    carry: tuple[Tensor, ...] = ()  # what the next batch of the same streams is given, one row per row of the batch


# What an update minimises: (network, batch, label smoothing) -> loss.
Loss = Callable[[Network, Batch, float], BatchLoss]


def batch_loss(model: Network, batch: Batch, smoothing: float = 0.0) -> BatchLoss:
    """The loss of most tasks: the batch through the network, its states through the output layer's own loss."""
    states, carry = model.carried(*batch.inputs)
    return replace(states_loss(model, states, batch.targets, smoothing, batch.ignore), carry=carry)


def states_loss(model: Network, states: Tensor, targets: Tensor, smoothing: float = 0.0, ignore: int = 0) -> BatchLoss:
    """States (…, D) through the model's output layer against targets (…); those equal to `ignore` do not count.

    Soft targets (…, V) are probabilities of the classes, as of two pictures that are mixed; all of them count.
    """
    if targets.is_floating_point():
        return soft_cross_entropy(model.output.logits(states), targets, smoothing)
    rows, wanted = _counted(states, targets, ignore)
    total, log_loss = model.output.loss(rows, wanted, smoothing)
    return BatchLoss(total, log_loss, wanted.numel())


def class_loss(model: Network, batch: Batch, smoothing: float = 0.0, weights: Tensor | None = None) -> BatchLoss:
    """The loss of one class per row. Of the rows of class c each counts `weights`[c] times; (C,), unset: once.

    Outside of training the answers come with it.
    """
    states = model.states(*batch.inputs)
    if weights is not None:
        return _weighted(model.output.logits(states), batch, smoothing, weights.to(states))
    sums = states_loss(model, states, batch.targets, smoothing, batch.ignore)
    if torch.is_grad_enabled():
        return sums
    return BatchLoss(sums.total, sums.log_loss, sums.count, model.output.logits(states).argmax(dim=-1))


def token_loss(model: Network, batch: Batch, smoothing: float = 0.0) -> BatchLoss:
    """`batch_loss`; outside of training with the likeliest token at each place that has a target."""
    states = model.states(*batch.inputs)
    sums = states_loss(model, states, batch.targets, smoothing, batch.ignore)
    if torch.is_grad_enabled():
        return sums
    rows, _ = _counted(states, batch.targets, batch.ignore)
    answers = [model.output.logits(rows[start : start + _ROWS]).argmax(dim=-1) for start in range(0, len(rows), _ROWS)]
    return BatchLoss(sums.total, sums.log_loss, sums.count, torch.cat(answers) if answers else rows.new_zeros(0))


def contrast_loss(model: Network, batch: Batch, smoothing: float = 0.0, temperature: float = 0.05) -> BatchLoss:
    """Each text of a group must find its partner, and each partner its text, among those of the group.

    The batch has groups of texts and their partners, ids (groups, 2 · pairs, S). Cosines divided by the temperature are
    the logits of a choice among `pairs`; the loss of a pair is the mean over both directions.
    """
    ids, lengths = batch.inputs
    vectors = torch.nn.functional.normalize(model.states(ids.flatten(0, 1), lengths.flatten()), dim=-1)  # (…, D)
    texts, partners = vectors.view(*lengths.shape, -1).chunk(2, dim=1)  # (groups, pairs, D) each
    scores = texts @ partners.transpose(1, 2) / temperature  # (groups, pairs, pairs)
    both = torch.cat((scores, scores.transpose(1, 2)))
    targets = batch.targets.repeat(2, 1)
    total, _ = label_smoothed_cross_entropy(both, targets, smoothing, batch.ignore)
    plain, _ = label_smoothed_cross_entropy(both.detach(), targets, 0.0, batch.ignore)
    answers = None if torch.is_grad_enabled() else scores.argmax(dim=-1).flatten()
    return BatchLoss(total / 2, plain / 2, batch.targets.numel(), answers)


def _weighted(logits: Tensor, batch: Batch, smoothing: float, weights: Tensor) -> BatchLoss:
    targets = batch.targets
    if not targets.is_floating_point():
        counted = targets != batch.ignore
        logits, targets = logits[counted], torch.nn.functional.one_hot(targets[counted], len(weights)).to(logits)
    log_probs = logits.log_softmax(dim=-1)
    picked = (targets * log_probs).sum(dim=-1)
    losses = -(1.0 - smoothing) * picked - smoothing * log_probs.mean(dim=-1)
    return BatchLoss((losses * (targets @ weights)).sum(), -picked.detach().sum(), len(targets))


def label_smoothed_cross_entropy(
    logits: Tensor, targets: Tensor, smoothing: float = 0.1, ignore: int = 0
) -> tuple[Tensor, Tensor]:
    """Cross-entropy against (1 - ε) on the target plus ε/V on every class (the paper's section 5.4, ε = 0.1).

    logits (…, V), targets (…); targets equal to `ignore` (padding) do not count. Returns (sum, count).
    """
    if logits.shape[:-1] != targets.shape:
        raise ShapeError(
            f"logits {tuple(logits.shape)} need targets {tuple(logits.shape[:-1])}, not {tuple(targets.shape)}"
        )
    log_probs = logits.log_softmax(dim=-1)
    counted = targets != ignore
    picked = log_probs.gather(-1, targets.masked_fill(~counted, 0)[..., None]).squeeze(-1)
    losses = -(1.0 - smoothing) * picked - smoothing * log_probs.mean(dim=-1)
    return losses.masked_fill(~counted, 0.0).sum(), counted.sum()


def soft_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> BatchLoss:
    """Cross-entropy against probabilities (rows, V), of which ε is spread over all classes. Holds all logits."""
    if logits.shape != targets.shape:
        raise ShapeError(f"soft targets must be {tuple(logits.shape)}, as the logits, not {tuple(targets.shape)}")
    log_probs = logits.log_softmax(dim=-1)
    log_loss = -(targets * log_probs).sum()
    total = (1.0 - smoothing) * log_loss - smoothing * log_probs.mean(dim=-1).sum()
    return BatchLoss(total, log_loss.detach(), targets.size(0))


def projected_cross_entropy(
    states: Tensor, weight: Tensor, targets: Tensor, smoothing: float = 0.1, ignore: int = 0
) -> tuple[Tensor, Tensor]:
    """`label_smoothed_cross_entropy(states @ weightᵀ, …)` without ever holding all the logits.

    states (…, D), weight (V, D). Padding is not even projected.
    """
    rows, wanted = _counted(states, targets, ignore)
    total, _ = projected_loss(rows, weight, wanted, smoothing)
    return total, torch.tensor(wanted.numel(), device=states.device)


def _counted(states: Tensor, targets: Tensor, ignore: int) -> tuple[Tensor, Tensor]:
    """The rows that have a target, (rows, D), and those targets."""
    if states.shape[:-1] != targets.shape:
        raise ShapeError(
            f"states {tuple(states.shape)} need targets {tuple(states.shape[:-1])}, not {tuple(targets.shape)}"
        )
    rows, wanted = states.flatten(0, -2), targets.flatten()
    counted = (wanted != ignore).nonzero().squeeze(1)
    return (rows, wanted) if counted.numel() == wanted.numel() else (rows[counted], wanted[counted])

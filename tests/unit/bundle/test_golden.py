from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from fixtures_models import small_transformer

from headwise.bundle.golden import check_golden, golden_output
from headwise.errors import ModelError
from headwise.models.lm import LanguageModel


@pytest.fixture
def model() -> LanguageModel:
    torch.manual_seed(1)
    return LanguageModel(vocab=30, model_dim=16, num_heads=2, layers=1, ff_dim=16).eval()


def test_the_answer_is_kept_and_other_weights_give_another(model: LanguageModel) -> None:
    golden = golden_output(model)
    assert len(golden) == 4
    check_golden(model, golden, Path("model"))
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.embedding.weight.copy_(other.embedding.weight.flip(0))
    with pytest.raises(ModelError, match=r"model: the model answers .* take another copy"):
        check_golden(other, golden, Path("model"))


def test_rounding_is_not_another_answer(model: LanguageModel) -> None:
    with torch.no_grad():
        model.embedding.weight[5] = model.embedding.weight[6]  # a tie
        golden = [6 if number == 5 else number for number in golden_output(model)]
        check_golden(model, golden, Path("model"))
        for parameter in model.parameters():
            parameter.copy_(parameter.half().float())
    check_golden(model, golden, Path("model"))


@pytest.mark.parametrize("golden", [None, "text", {"output": [1]}, [1.5]])
def test_what_is_not_an_answer_is_not_compared(model: LanguageModel, golden: object) -> None:
    check_golden(model, golden, Path("model"))


@pytest.mark.parametrize("golden", [[], [1] * 9, [10**9] * 4, [-1] * 4])
def test_an_answer_of_another_form_is_refused(model: LanguageModel, golden: list[int]) -> None:
    with pytest.raises(ModelError, match="take another copy"):
        check_golden(model, golden, Path("model"))


def test_an_answer_that_is_not_a_number_is_refused(model: LanguageModel) -> None:
    with torch.no_grad():
        model.embedding.weight.fill_(torch.nan)
    with pytest.raises(ModelError, match="NaN or infinite"):
        golden_output(model)


def test_translators_and_small_vocabularies_have_answers() -> None:
    torch.manual_seed(1)
    assert len(golden_output(small_transformer(40).eval())) == 4
    assert len(golden_output(LanguageModel(vocab=5, model_dim=8, num_heads=1, layers=1, ff_dim=8).eval())) == 4

from __future__ import annotations

import asyncio

import pytest

from headwise.serving.errors import RequestError
from headwise.serving.routes.encoder_model import LONG_TEXT, MOST_TOKENS, check_tokens, off_loop


def test_what_has_too_many_tokens_is_refused_with_the_bound() -> None:
    check_tokens([MOST_TOKENS])
    with pytest.raises(RequestError, match=f"but a request may have {MOST_TOKENS:,}") as caught:
        check_tokens([MOST_TOKENS, 1])
    assert caught.value.status == 413


@pytest.mark.parametrize("characters", [1, LONG_TEXT])
def test_long_texts_are_encoded_in_another_thread_with_the_same_result(characters: int) -> None:
    assert asyncio.run(off_loop(sorted, ["b", "a"], characters)) == ["a", "b"]

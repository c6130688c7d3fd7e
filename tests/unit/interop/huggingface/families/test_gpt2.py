from __future__ import annotations

from pathlib import Path

from headwise.config.families.lm import LanguageModelSettings
from headwise.interop.huggingface.families.gpt2 import keys, read_config, write_config
from headwise.interop.huggingface.published import Config

OPENAI = {"n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "vocab_size": 50257, "model_type": "gpt2"}


def test_the_smallest_gpt2_is_our_preset() -> None:
    from headwise.config.families.lm import FAMILY

    settings = read_config(Config(Path("config.json"), OPENAI))
    assert {name: settings[name] for name in FAMILY.presets["gpt2"]} == dict(FAMILY.presets["gpt2"])
    whole = {**LanguageModelSettings.of(settings).model_dump(mode="json"), "vocab": 50260, "absent": 3}
    written = write_config(whole)
    assert {name: written[name] for name in OPENAI if name != "model_type"} == {
        name: value for name, value in OPENAI.items() if name != "model_type"
    }
    table = list(keys(whole))
    assert len({key.ours for key in table}) == len({key.theirs for key in table}) == 12 * 12 + 4

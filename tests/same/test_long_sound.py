"""A long sound is transcribed in the memory of a short one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from small_sounds import write_sound_recipe
from sounds import tone

from headwise.config.recipe import load_recipe
from headwise.workflows.train import train

RATE = 8000
SCRIPT = """
import resource, sys
from headwise.workflows.transcribe import open_transcriber
opened = open_transcriber(sys.argv[1], sys.argv[4])
def heard(file):
    (found,) = opened.transcribe([file], beam=1)
    return found
heard(sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = heard(sys.argv[3])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, found.seconds, found.silence, len(found.segments))
"""


def write_minutes(file: Path, minutes: int) -> Path:
    """Tones of changing pitch with pauses, ten seconds of sound and two of silence by turns."""
    with soundfile.SoundFile(file, "w", RATE, 1, subtype="PCM_U8") as sound:
        for number in range(minutes * 5):
            tones = [tone(0.4, 300 + 50 * ((number + n) % 40), RATE) for n in range(25)]
            sound.write(np.concatenate([*tones, np.zeros(2 * RATE, np.float32)]))
    return file


@pytest.mark.parametrize(
    ("minutes", "engine"),
    [(10, "ctranslate2"), pytest.param(60, "ctranslate2", marks=pytest.mark.slow),
     pytest.param(60, "torch", marks=pytest.mark.slow)],
)  # fmt: skip
def test_memory_stays_flat_however_long_a_sound_is(tmp_path: Path, minutes: int, engine: str) -> None:
    recipe, base = load_recipe(write_sound_recipe(tmp_path, steps=4))
    model = train(recipe, base, tmp_path / "run").model
    short, long = write_minutes(tmp_path / "short.wav", 1), write_minutes(tmp_path / "long.wav", minutes)
    command = [sys.executable, "-c", SCRIPT, str(model), str(short), str(long), engine]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown, seconds, silence, segments = map(float, done.stdout.split())
    assert seconds == pytest.approx(60 * minutes, abs=0.2)
    assert 0 < silence < 15 * minutes
    assert segments >= 0
    assert grown < 15_000, "kilobytes; ten minutes alone have 38,000 as samples"

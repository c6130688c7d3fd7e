"""LibreTranslate's way of working, without its user interface: Flask behind waitress, one CTranslate2 call per request.

    python libretranslate_serving.py MODEL EXPORT BEAM THREADS WORKERS THREADS_OF_A_WORKER

The same weights, tokenizers and beam as the server beside it. LibreTranslate splits sentences with a model first; here
nothing is split. By default it has four threads, and one CTranslate2 worker with as many threads as that likes (0).
"""

from __future__ import annotations

import socket
import sys

import ctranslate2
import waitress
from flask import Flask, jsonify, request

from headwise.text.tokenizer import EOS, TokenizerPair


def main(model: str, export: str, beam: str, threads: str, workers: str, of_a_worker: str) -> None:
    tokenizers = TokenizerPair.load(model)
    source, target = tokenizers.source.vocabulary, tokenizers.target.vocabulary
    ids = {piece: number for number, piece in enumerate(target)}
    translator = ctranslate2.Translator(
        export, device="cpu", inter_threads=int(workers), intra_threads=int(of_a_worker)
    )
    app = Flask(__name__)

    @app.post("/translate")
    def translate() -> object:
        question = request.get_json()
        pieces = [*(source[number] for number in tokenizers.source.encode(question["q"])), source[EOS]]
        result = translator.translate_batch([pieces], beam_size=int(beam), num_hypotheses=1, replace_unknowns=True)[0]
        tokens = [ids[piece] for piece in result.hypotheses[0]]
        return jsonify({"translatedText": tokenizers.target.decode_batch([tokens])[0].strip()})

    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(f"at http://127.0.0.1:{listening.getsockname()[1]}", file=sys.stderr, flush=True)
    waitress.serve(app, sockets=[listening], threads=int(threads), _quiet=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

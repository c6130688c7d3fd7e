"""Classifiers, fillers and embedders of a server answer as offline; what is wrong gets one clear line."""

from __future__ import annotations

import base64
import io
import json
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from PIL import Image
from running import Running
from small_pictures import stripes
from small_tables import labelled_texts

from headwise.workflows.load import load

TEXTS = [text for text, _ in labelled_texts(30, seed=7)]


def png(pixels: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.asarray(pixels, dtype=np.uint8)).save(stream, **{"format": "PNG", **options})
    return stream.getvalue()


def png_by_hand(width: int, height: int, bits: int, colours: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """A file with a header and chunks that need not fit it."""
    header = struct.pack(">IIBBBBB", width, height, bits, colours, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in ((b"IHDR", header), *chunks, (b"IEND", b""))
    )


def png_that_claims(width: int, height: int) -> bytes:
    """A few bytes whose header promises a picture of any size."""
    return png_by_hand(width, height, 8, 2, (b"IDAT", zlib.compress(b"\0" * 100)))


def batched(server: Running, model: str, lane: str) -> tuple[float, float]:
    """Jobs and batches so far."""
    name = "headwise_batch_jobs"
    return tuple(server.metric(f"{name}_{part}", model=model, lane=lane) for part in ("sum", "count"))  # type: ignore[return-value]


def test_texts_are_classified_as_offline_also_by_many_clients_at_once(server: Running, models: dict[str, Path]) -> None:
    offline = load(models["kinds"]).classify(TEXTS)

    def ask(number: int) -> Any:
        return server.ask("POST", "/classify", {"text": TEXTS[number], "model": "kinds", "top": 2}).json["answers"][0]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(len(TEXTS))))
    assert [one["label"] for one in found] == [one.label for one in offline]
    assert [one["probability"] for one in found] == pytest.approx([one.probability for one in offline], abs=2e-5)
    assert all(len(one["top"]) == 2 and one["top"][0]["label"] == one["label"] for one in found)
    before = batched(server, "kinds", "classify")
    whole = server.ask("POST", "/classify", {"text": TEXTS, "model": "kinds"}).json
    assert (whole["model"], [one["label"] for one in whole["answers"]]) == ("kinds", [one.label for one in offline])
    jobs, batches = (after - past for after, past in zip(batched(server, "kinds", "classify"), before, strict=True))
    assert jobs == len(TEXTS) > 1.5 * batches, "texts were not classified together"


def test_pictures_are_classified_as_offline_whichever_way_they_come(server: Running, models: dict[str, Path]) -> None:
    pictures, _ = stripes(3, seed=2)
    files = [png(picture) for picture in pictures]
    offline = [one.label for one in load(models["stripes"]).classify(list(pictures))]
    uploaded = server.upload("/classify", [("image", file) for file in files], model="stripes", top="1").json
    assert [one["label"] for one in uploaded["answers"]] == offline
    in_json = [base64.b64encode(files[0]).decode(), "data:image/png;base64," + base64.b64encode(files[1]).decode()]
    answers = server.ask("POST", "/classify", {"image": in_json, "model": "stripes"}).json["answers"]
    assert [one["label"] for one in answers] == offline[:2]
    jpeg = png(np.tile(pictures[0], (100, 100)), format="JPEG")  # whatever its name says
    assert server.upload("/classify", [("image", jpeg)], model="stripes").status == 200


LIES: list[tuple[bytes, int, str]] = [
    (b"", 400, "the picture is empty"),
    (b"<html>no picture</html>", 400, "is not a picture that is read, whatever its name says"),
    (png(np.random.default_rng(0).integers(0, 256, (50, 50)))[:1500], 400, "is cut off or damaged"),
    (png_that_claims(5_001, 5_000), 413, "5,001 × 5,000 pixels, more than the 25,000,000 that are read"),
    (png_that_claims(2**31 - 1, 2**31 - 1), 413, "more pixels than the 25,000,000"),
    (png_that_claims(4_000, 4_000), 400, "is cut off or damaged"),
    (
        png(np.zeros((9, 9)), format="GIF"),
        400,
        "is not a picture that is read, whatever its name says; give one of PNG",
    ),
    (png_by_hand(9, 9, 8, 0, (b"zTXt", b"k\0\0" + zlib.compress(bytes(2**21)))), 400, "(Decompressed data too large"),
    (png(np.zeros((9, 9)), save_all=True, append_images=[Image.new("L", (9, 9), 9)]), 400, "has 2 frames or pages"),
    (b"P5 99999 99999 255\n", 400, "is not a picture"),
    (b"RIFF\xff\xff\xff\xffWEBPVP8 ", 400, "is cut off or damaged"),
]


def test_pictures_that_lie_are_refused_and_cost_no_memory(server: Running) -> None:
    good = png(np.zeros((9, 9)))
    assert server.upload("/classify", [("image", good)], model="stripes").status == 200
    before = server.memory()
    for content, status, part in LIES * 3:
        answer = server.upload("/classify", [("image", content)], model="stripes")
        assert (answer.status, part in answer.json["error"]) == (status, True), answer.json
        in_json = server.ask("POST", "/classify", {"image": base64.b64encode(content).decode(), "model": "stripes"})
        assert in_json.status == (status if content else 400)
    answer = server.upload("/classify", [("image", good), ("image", b"none")], model="stripes")
    assert (answer.status, "picture 2 is not a picture" in answer.json["error"]) == (400, True)
    assert server.memory() - before < 100 * 2**20
    assert server.ask("GET", "/health/ready").status == 200


def test_a_large_picture_takes_little_more_memory_than_its_pixels(server: Running) -> None:
    width, height = 5_000, 4_990
    clear = png_by_hand(width, height, 16, 6, (b"IDAT", zlib.compress(b"\0" * ((8 * width + 1) * height), 1)))
    assert server.upload("/classify", [("image", png(np.zeros((9, 9))))], model="stripes").status == 200
    before = server.memory()
    server.forget_peak()
    assert server.upload("/classify", [("image", clear)] * 2, model="stripes").status == 200
    # Pillow has four bytes per pixel: the picture, and the same on white.
    assert server.peak() - before < 3 * 4 * width * height


def test_gaps_are_filled_as_offline(server: Running, models: dict[str, Path]) -> None:
    texts = ["dog cat [MASK] bird fish", "[MASK] blue green [MASK] black"]
    offline = load(models["gaps"]).fill(texts, top=3)
    answer = server.ask("POST", "/fill", {"text": texts, "top": 3}).json
    assert answer["model"] == "gaps"
    assert [one["text"] for one in answer["answers"]] == [one.text for one in offline]
    for found, expected in zip(answer["answers"], offline, strict=True):
        for gap, candidates in zip(found["gaps"], expected.gaps, strict=True):
            assert [one["text"] for one in gap] == [one.text for one in candidates]
            assert [one["filled"] for one in gap] == [one.filled for one in candidates]
            assert [one["probability"] for one in gap] == pytest.approx([c.probability for c in candidates], abs=2e-5)


def test_texts_are_embedded_as_offline(server: Running, models: dict[str, Path]) -> None:
    offline = load(models["vectors"]).embed(TEXTS)
    before = batched(server, "vectors", "embed")
    answer = server.ask("POST", "/embed", {"text": TEXTS}).json
    jobs, batches = (after - past for after, past in zip(batched(server, "vectors", "embed"), before, strict=True))
    assert jobs == len(TEXTS) > 1.5 * batches, "texts were not embedded together"
    assert (answer["model"], answer["dimensions"]) == ("vectors", offline.shape[1])
    np.testing.assert_allclose(answer["vectors"], offline, atol=2e-5)
    coded = server.ask("POST", "/embed", {"text": TEXTS[0], "encoding": "base64"}).json["vectors"][0]
    np.testing.assert_allclose(np.frombuffer(base64.b64decode(coded), dtype="<f4"), offline[0], atol=2e-5)


def test_the_openai_client_embeds(server: Running, models: dict[str, Path]) -> None:
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none needed", max_retries=0)
    offline = load(models["vectors"]).embed(TEXTS[:3])
    for options in ({}, {"encoding_format": "float"}, {"encoding_format": "base64", "dimensions": offline.shape[1]}):
        found = client.embeddings.create(model="vectors", input=TEXTS[:3], **options)  # type: ignore[arg-type]
        vectors = [
            np.frombuffer(base64.b64decode(one.embedding), dtype="<f4") if isinstance(one.embedding, str) else
            one.embedding for one in found.data
        ]  # fmt: skip
        np.testing.assert_allclose(vectors, offline, atol=2e-5)
        assert found.usage.prompt_tokens == found.usage.total_tokens > 6
    assert len(client.embeddings.create(model="vectors", input=TEXTS[0]).data) == 1
    with pytest.raises(openai.BadRequestError, match="input must be text: token ids"):
        client.embeddings.create(model="vectors", input=[1, 2, 3])
    with pytest.raises(openai.BadRequestError, match="leave dimensions out"):
        client.embeddings.create(model="vectors", input="red", dimensions=7)
    with pytest.raises(openai.NotFoundError, match="there are vectors"):
        client.embeddings.create(model="words", input="red")
    assert {model.id for model in client.models.list()} >= {"letters", "vectors"}


MISTAKES: list[tuple[str, dict[str, Any], int, str]] = [
    ("/classify", {"model": "kinds"}, 400, "send either text or image"),
    ("/classify", {"text": "a", "image": "a", "model": "kinds"}, 400, "send either text or image"),
    ("/classify", {"text": "a", "second": ["a", "b"], "model": "kinds"}, 400, "the same number of texts"),
    ("/classify", {"text": "a", "second": "b", "model": "kinds"}, 400, "this model reads texts: send text"),
    ("/classify", {"text": "a", "model": "stripes"}, 400, "this model reads pictures: send image"),
    ("/classify", {"image": "!", "model": "stripes"}, 400, "must be encoded as base64"),
    ("/classify", {"text": "a", "model": "words"}, 400, "not of the task 'classify'; those that are: kinds, stripes"),
    ("/classify", {"text": "a", "model": "none"}, 404, "there is no such model"),
    ("/classify", {"text": ["a" * 6000, "b" * 6000]}, 400, "all texts together may have 10,000 characters"),
    ("/classify", {"text": ["a"] * 101}, 400, "at most 100 items"),
    ("/fill", {"text": "no gap"}, 400, "there is no gap"),
    ("/fill", {"text": "[MASK] " * 51}, 413, "but a request may have 50"),
    ("/fill", {"text": "[MASK] " + "a " * 30}, 400, "the model reads at most 24"),
    ("/fill", {"text": ["[MASK] [MASK] [MASK] " + "a" * 900] * 10, "top": 50}, 413, "at most 1,000,000 are written"),
    ("/fill", {"text": "[MASK]", "top": 51}, 400, "top: Input should be less than or equal to 50"),
    ("/embed", {"text": []}, 400, "at least 1 item"),
    ("/embed", {"text": ["a" * 9000] * 12}, 400, "all texts together may have 100,000 characters"),
    ("/embed", {"text": "a", "encoding": "int8"}, 400, "encoding: Input should be 'float' or 'base64'"),
]


def test_every_mistake_is_one_clear_line(server: Running) -> None:
    for path, body, status, part in MISTAKES:
        answer = server.ask("POST", path, body)
        assert (answer.status, part in answer.json["error"]) == (status, True), (path, answer.json)
    for files, fields, part in (
        ([], {"model": "stripes"}, "missing image parameter"),
        ([("photo", b"x")], {}, "send files in the field image"),
        ([("image", b"x")] * 17, {}, "Too many files"),
        ([("image", b"x")], {"top": "many"}, "top: Input should be a valid integer"),
        ([("image", b"x")], {"image": "x"}, "missing image parameter"),
    ):
        answer = server.upload("/classify", files, **fields)
        assert (answer.status, part in answer.json["error"]) == (400, True), answer.json


def test_look_shows_the_attention_of_encoders(server: Running) -> None:
    for model, text in (("kinds", "red dog"), ("gaps", "red [MASK]"), ("vectors", "red dog")):
        answer = server.ask("POST", "/look", {"text": text, "model": model})
        assert answer.status == 200, answer.json
        assert b"ttention" in answer.body
    assert server.ask("POST", "/look", {"text": "red", "model": "stripes"}).status == 400


def test_look_tells_what_moved_the_label_of_a_text(server: Running, models: dict[str, Path]) -> None:
    seen = load(models["kinds"], engine="torch").look("dog cat red")
    found = server.ask("POST", "/look", {"text": "dog cat red", "model": "kinds", "format": "json"}).json
    assert found["label"] == "animals"
    assert [word.strip() for word, _ in found["words"]] == ["dog", "cat", "red"]
    assert [value for _, value in found["words"]] == pytest.approx(seen.saliency[0, 1:4], abs=1e-3)
    other = server.ask("POST", "/look", {"text": "dog", "model": "kinds", "format": "json", "target": "colours"})
    assert other.json["label"] == "colours"
    for body, part in (
        ({"text": "dog", "model": "kinds", "format": "json", "target": "none"}, "the model has no label 'none'"),
        ({"text": "dog", "model": "vectors", "format": "json"}, "does not choose among labels"),
        ({"text": "dog", "model": "kinds", "format": "xml"}, "format: Input should be 'page' or 'json'"),
    ):
        answer = server.ask("POST", "/look", body)
        assert (answer.status, part in answer.json["error"]) == (400, True), answer.json


def test_look_shows_what_is_attended_to_in_a_picture_and_what_moved_its_label(
    server: Running, models: dict[str, Path]
) -> None:
    (picture, *_), _ = stripes(3, seed=2)
    seen = load(models["stripes"]).look(picture)
    page = server.upload("/look", [("file", png(picture))], model="stripes")
    assert (page.status, b"Attention over a picture" in page.body) == (200, True)
    found = server.upload("/look", [("file", png(picture))], model="stripes", format="json").json
    assert found["label"] == seen.label
    with Image.open(io.BytesIO(base64.b64decode(found["picture"]))) as read:
        np.testing.assert_array_equal(np.asarray(read), seen.pixels[..., 0])
    steps = np.frombuffer(base64.b64decode(found["map"]["values"]), dtype=np.uint8).reshape(seen.saliency.shape)
    np.testing.assert_allclose((steps - 128.0) / 127, seen.saliency / np.abs(seen.saliency).max(), atol=1 / 127)
    before = server.memory()
    for content, status, part in LIES:
        answer = server.upload("/look", [("file", content)], model="stripes")
        assert (answer.status, part in answer.json["error"]) == (status, True), answer.json
    assert server.memory() - before < 100 * 2**20
    for files, fields, part in (
        ([], {"model": "stripes"}, "missing file parameter"),
        ([("image", b"x")], {"model": "stripes"}, "send files in the field file"),
        ([("file", png(picture))], {"model": "kinds"}, "send text"),
    ):
        answer = server.upload("/look", files, **fields)
        assert (answer.status, part in answer.json["error"]) == (400, True), answer.json


def test_every_model_has_a_card(server: Running, models: dict[str, Path]) -> None:
    for name, kind in (("words", "translate"), ("kinds", "classify"), ("tones", "transcribe"), ("letters", "generate")):
        card = server.ask("GET", f"/models/{name}").json
        assert (card["name"], card["task"]) == (name, kind)
        assert card["parameters"] > 1000
        assert card["family_about"]
    written = json.loads((models["kinds"] / "card.json").read_text(encoding="utf-8"))
    assert server.ask("GET", "/models/kinds").json["validation"]["accuracy"] == written["validation"]["accuracy"]
    assert server.ask("GET", "/models/none").status == 404


def test_the_list_of_models_says_what_each_reads(server: Running) -> None:
    told = {one["name"]: (one["kind"], one["reads"]) for one in server.ask("GET", "/models").json["models"]}
    assert told["kinds"] == ("classify", "text")
    assert told["stripes"] == ("classify", "image")
    assert told["vectors"] == ("embed", "text")

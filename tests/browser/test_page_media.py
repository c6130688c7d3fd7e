"""Pictures and sound on the server's page, in a real Chromium whose camera and microphone are files."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures_page import Opened, chromium_with
from PIL import Image
from small_pictures import stripes
from sounds import save, tone

from headwise.sound.reading import SoundBytes
from headwise.tasks.served_encoders import MOST_PIXELS
from headwise.workflows.load import load

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.browser
LYING, STANDING = ((picture.repeat(8, axis=0).repeat(8, axis=1)) for picture in stripes(2, seed=2)[0])
DROP = """async ([selector, name, type, bytes]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([new Uint8Array(bytes)], name, { type }));
  const options = { dataTransfer: transfer, clipboardData: transfer, bubbles: true, cancelable: true };
  if (selector === "paste") document.dispatchEvent(new ClipboardEvent("paste", options));
  const element = document.querySelector(selector);
  for (const kind of ["dragenter", "drop"]) element?.dispatchEvent(new DragEvent(kind, options));
}"""

KEEP_FILE = """() => {
  const plain = window.fetch;
  window.fetch = async (address, options) => {
    if (options.body instanceof FormData)
      window.sent = [...new Uint8Array(await options.body.get("file").arrayBuffer())];
    return plain(address, options);
  };
}"""

# The browser asks whether the page may hear or see, until allow() is called.
ASK = """() => {
  const devices = navigator.mediaDevices;
  const plain = devices.getUserMedia.bind(devices);
  const answer = new Promise((allow) => { window.allow = allow; });
  Object.assign(window, { asked: 0, streams: [] });
  devices.getUserMedia = async (wanted) => {
    window.asked += 1;
    await answer;
    const stream = await plain(wanted);
    window.streams.push(stream);
    return stream;
  };
}"""
RELEASED = """count => streams.length === count
  && streams.every((stream) => stream.getTracks().every((track) => track.readyState === "ended"))"""


def png(pixels: Any) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def windows() -> Any:
    """Sound for several windows of the small model."""
    return np.concatenate([tone(0.8, 300.0 * (1 + number % 5)) for number in range(6)])


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium with a camera that sees stripes which stand, and a microphone that hears tones."""
    folder = tmp_path_factory.mktemp("media")
    grey = STANDING.astype(np.uint8)
    frame = grey.tobytes() + bytes([128]) * (grey.size // 2)
    video, sound = folder / "camera.y4m", save(folder / "microphone.wav", windows())
    video.write_bytes(b"YUV4MPEG2 W64 H64 F5:1 Ip A1:1 C420jpeg\n" + (b"FRAME\n" + frame) * 5)
    with chromium_with(
        "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-video-capture={video}", f"--use-file-for-fake-audio-capture={sound}",
        "--autoplay-policy=no-user-gesture-required",
    ) as running:  # fmt: skip
        yield running


@pytest.fixture(params=["en-GB", "zh-CN"])
def opened(browser: Any, task_server: str, request: pytest.FixtureRequest) -> Iterator[Opened]:
    phone = {"width": 390, "height": 800}
    options = {"viewport": phone} if request.param == "zh-CN" else {}
    opened = Opened(browser, task_server, "classify", locale=request.param, **options)
    yield opened
    assert [p for p in opened.problems if not any(e in p for e in opened.expected)] == []
    assert [url for url in opened.requests if not url.startswith((task_server, "data:", "blob:", "about:"))] == []
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    opened.context.close()


def chinese(opened: Opened) -> bool:
    return str(opened.page.get_attribute("html", "lang")) == "zh-CN"


def choose(opened: Opened, button: str, name: str, kind: str, content: bytes) -> None:
    with opened.page.expect_file_chooser() as chooser:
        opened.page.click(button)
    chooser.value.set_files({"name": name, "mimeType": kind, "buffer": content})


def test_a_picture_is_chosen_dropped_pasted_or_photographed(opened: Opened, picture_model: Path) -> None:
    page, offline = opened.page, load(picture_model)
    lying, standing = (one.label for one in offline.classify([LYING, STANDING]))
    assert lying != standing
    page.select_option("#classify-model", "stripes")
    playwright.expect(page.locator("#classify-text")).to_be_hidden()
    opened.text("#classify-answers", "图片最可能的标签" if chinese(opened) else "The most likely labels of the picture")
    label = "#classify-answers .verdict-label"
    choose(opened, "#picture-choose", "a.png", "image/png", png(LYING))
    opened.text(label, lying)
    assert page.locator("#picture-canvas").is_visible()
    for number, way in enumerate(("#picture-drop", "paste", "#picture-drop", "paste")):
        picture, expected = ((STANDING, standing), (LYING, lying))[number % 2]
        page.evaluate(DROP, [way, "b.png", "image/png", list(png(picture))])
        opened.text(label, expected)
    page.click("#picture-photo")
    playwright.expect(page.locator("#picture-shoot")).to_be_focused()
    page.keyboard.press("Enter")
    opened.text(label, standing)
    assert page.is_hidden("#picture-video")
    widths = page.eval_on_selector_all(".bars .meter span", "bars => bars.map(bar => bar.offsetWidth)")
    assert widths == sorted(widths, reverse=True)
    page.evaluate(DROP, ["paste", "c.png", "image/png", [1, 2, 3]])
    opened.text("#classify-problem", "无法读取此图片" if chinese(opened) else "not a picture")


def test_a_picture_of_more_pixels_than_the_server_reads_is_made_smaller(opened: Opened, picture_model: Path) -> None:
    page, times = opened.page, math.isqrt(MOST_PIXELS // STANDING.size) + 1
    huge = STANDING.repeat(times, axis=0).repeat(times, axis=1)
    assert huge.size > MOST_PIXELS
    page.select_option("#classify-model", "stripes")
    choose(opened, "#picture-choose", "a.png", "image/png", png(huge))
    opened.text("#classify-answers .verdict-label", load(picture_model).classify([STANDING])[0].label)


def test_the_last_picture_that_was_given_is_the_one_that_is_read(opened: Opened, picture_model: Path) -> None:
    page = opened.page
    page.select_option("#classify-model", "stripes")
    playwright.expect(page.locator("#picture-drop")).to_be_visible()
    page.evaluate(
        """() => {
          const [plain, turn] = [window.createImageBitmap, new Promise((come) => { window.goOn = come; })];
          window.createImageBitmap = async (file) => {
            if (file.name === "slow.png") await turn;
            const bitmap = await plain(file);
            window.decoded = file.name;
            return bitmap;
          };
        }"""
    )
    page.evaluate(DROP, ["paste", "slow.png", "image/png", list(png(LYING))])
    page.evaluate(DROP, ["paste", "quick.png", "image/png", list(png(STANDING))])
    label = load(picture_model).classify([STANDING])[0].label
    opened.text("#classify-answers .verdict-label", label)
    page.evaluate("() => { window.goOn(); }")
    page.wait_for_function("() => window.decoded === 'slow.png'")
    assert page.get_attribute("#classify-answers", "aria-busy") == "false"
    assert page.inner_text("#classify-answers .verdict-label") == label


def test_a_model_of_texts_that_is_chosen_while_pictures_are_loaded_gets_its_text(opened: Opened) -> None:
    page, held = opened.page, []
    page.route("**/pictures.js", lambda route: held.append(route))
    with page.expect_request("**/pictures.js"):
        page.select_option("#classify-model", "stripes")
    page.select_option("#classify-model", "kinds")
    held[0].continue_()
    page.evaluate("async () => { await import(new URL('page/pictures.js', document.baseURI)); }")
    playwright.expect(page.locator("#classify-text")).to_be_visible()
    assert page.is_hidden("#picture-drop")


def test_what_moved_the_label_of_a_picture_lies_over_it(opened: Opened, picture_model: Path) -> None:
    page = opened.page
    page.select_option("#classify-model", "stripes")
    choose(opened, "#picture-choose", "<b>.png", "image/png", png(STANDING))
    opened.text("#classify-answers .verdict-label", load(picture_model).classify([STANDING])[0].label)
    page.click("#moved-box summary")
    page.wait_for_selector("#moved .over canvas")
    alpha = """canvas => [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data]
      .filter((_, place) => place % 4 === 3)"""
    shown = page.eval_on_selector("#moved canvas", alpha)
    expected = np.abs(load(picture_model).look(STANDING).saliency)
    assert np.corrcoef(shown, expected.ravel())[0, 1] > 0.99
    other = page.locator("#classify-answers .bars button").nth(1)
    name = other.inner_text()
    other.click()
    opened.text("#moved", f"“{name}”")
    playwright.expect(page.locator("#classify-answers [aria-pressed=true]")).to_have_text(name)
    page.click("#classify-look")
    frame = page.frame_locator("#look-place iframe")
    frame.locator("html[data-shown=rollout-0-0]").wait_for(state="attached")
    opened.text("#look-what", "<b>.png")
    frame.get_by_role("button").nth(1).click()
    frame.locator("html[data-shown=saliency-0-0]").wait_for(state="attached")
    heading = "图片上的注意力" if chinese(opened) else "Attention over a picture"
    assert frame.locator("h1").inner_text() == heading
    assert frame.locator("#maps button").count() == 4  # two that sum up, and two heads


def test_a_sound_file_is_transcribed_as_it_is_found_and_played_from_its_times(
    opened: Opened, speech_model: Path, tmp_path: Path
) -> None:
    page, content = opened.page, save(tmp_path / "a.wav", windows()).read_bytes()
    page.click("#tab-transcribe")
    opened.text("#sound-name", "把声音文件拖放到这里" if chinese(opened) else "Drop a sound file here")
    choose(opened, "#sound-choose", "a.wav", "audio/wav", content)
    opened.text("#transcribe-status", "完成：声音长 4.8 秒" if chinese(opened) else "Done: 4.8 s of sound")
    (offline,) = load(speech_model).transcribe([SoundBytes(content)])
    rows = page.locator("#segments li")
    assert rows.locator("span").all_inner_texts() == [one.text.strip() for one in offline.segments]
    assert rows.count() >= 3
    opened.text("#sound-name", "a.wav · 0:04.8")
    times = rows.locator("button")
    playwright.expect(times.nth(1)).to_be_enabled()
    times.nth(1).focus()
    page.keyboard.press("Enter")
    playwright.expect(rows.nth(1)).to_have_class("current", timeout=20_000)
    assert page.locator("#segments .current").count() == 1
    page.keyboard.press("Escape")
    playwright.expect(page.locator("#segments .current")).to_have_count(0)
    page.click("#transcribe-look")
    frame = page.frame_locator("#look-place iframe")
    frame.locator("html[data-shown=sound]").wait_for(state="attached")
    assert frame.locator("h1").inner_text() == ("声音上的注意力" if chinese(opened) else "Attention over sound")
    assert page.locator("#look-what option").count() == rows.count()
    frame.get_by_role("button", name="下一步" if chinese(opened) else "Next step").click()
    assert frame.locator("#text .current").count() == 1


def test_segments_are_shown_while_others_are_still_to_come(opened: Opened, tmp_path: Path) -> None:
    page, content = opened.page, save(tmp_path / "a.wav", windows()).read_bytes()
    page.click("#tab-transcribe")
    page.evaluate(
        """() => {
          const encoder = new TextEncoder();
          const event = (value) => encoder.encode(`data: ${JSON.stringify(value)}\\n\\n`);
          const segment = { start: 0, end: 1.5, text: "<b>first</b>" };
          const body = new ReadableStream({ start(to) { window.rest = to; to.enqueue(event({ segment })); } });
          window.more = (value) => window.rest.enqueue(event(value));
          window.fetch = async () => new Response(body);
        }"""
    )
    choose(opened, "#sound-choose", "a.wav", "audio/wav", content)
    opened.text("#segments", "<b>first</b>")
    assert page.get_attribute("#segments", "aria-busy") == "true"
    opened.text("#transcribe-run", "停止" if chinese(opened) else "Stop")
    page.evaluate("""() => window.more({ segment: { start: 61.5, end: 63, text: "second" } })""")
    opened.text("#segments", "second")
    assert page.locator("#segments button").all_inner_texts() == ["0:00.0", "1:01.5"]
    page.evaluate("() => { window.more({ error: 'it broke' }); }")
    opened.text("#transcribe-problem", "it broke")
    assert page.locator("#segments li").count() == 2


def test_the_microphone_is_recorded_and_transcribed(opened: Opened) -> None:
    page = opened.page
    page.click("#tab-transcribe")
    page.click("#sound-record")
    page.wait_for_function("() => /0:0[2-9]/.test(document.getElementById('sound-name').textContent)")
    page.evaluate(KEEP_FILE)
    page.click("#sound-record")
    opened.text("#transcribe-status", "完成" if chinese(opened) else "Done")
    wav = bytes(page.evaluate("window.sent"))
    samples = np.frombuffer(wav[44:], dtype="<i2") / 32768
    assert int.from_bytes(wav[24:28], "little") == 16_000
    assert 1.9 <= len(samples) / 16_000 < 20
    spectrum = np.abs(np.fft.rfft(samples[-8000:]))
    hertz = float(np.fft.rfftfreq(8000, 1 / 16_000)[spectrum.argmax()])
    assert min(abs(hertz - 300 * (1 + number)) for number in range(5)) < 10, hertz
    assert page.locator("#segments button").count() >= 1
    opened.text("#sound-name", "录音 · 0:0" if chinese(opened) else "Recording · 0:0")
    opened.expected.append("Permission")
    page.evaluate("() => { navigator.mediaDevices.getUserMedia = async () => { throw new Error('denied'); }; }")
    page.click("#sound-record")
    opened.text("#transcribe-problem", "无法使用麦克风" if chinese(opened) else "The microphone cannot be used")


def test_a_second_click_while_the_browser_asks_starts_no_second_recording(opened: Opened) -> None:
    page = opened.page
    page.click("#tab-transcribe")
    page.evaluate(ASK)
    page.dblclick("#sound-record")
    page.evaluate("() => { window.allow(); }")
    opened.text("#sound-record", "停止录音" if chinese(opened) else "Stop recording")
    assert page.evaluate("window.asked") == 1
    page.click("#sound-record")
    page.wait_for_function(RELEASED, arg=1)
    opened.text("#transcribe-status", "完成" if chinese(opened) else "Done")


def test_a_second_click_while_the_browser_asks_opens_no_second_camera(opened: Opened) -> None:
    page = opened.page
    page.select_option("#classify-model", "stripes")
    page.evaluate(ASK)
    page.dblclick("#picture-photo")
    page.evaluate("() => { window.allow(); }")
    playwright.expect(page.locator("#picture-shoot")).to_be_focused()
    assert page.evaluate("window.asked") == 1
    page.click("#picture-photo")
    page.wait_for_function(RELEASED, arg=1)


@pytest.mark.parametrize(("view", "button"), [("transcribe", "#sound-record"), ("classify", "#picture-photo")])
def test_a_view_that_was_left_neither_hears_nor_sees(opened: Opened, view: str, button: str) -> None:
    page = opened.page
    page.select_option("#classify-model", "stripes")
    playwright.expect(page.locator("#picture-drop")).to_be_visible()
    page.click(f"#tab-{view}")
    before = page.inner_text(button)
    page.evaluate(ASK)
    page.click(button)
    page.click("#tab-fill")
    page.evaluate("() => { window.allow(); }")
    page.wait_for_function(RELEASED, arg=1)
    page.click(f"#tab-{view}")
    assert page.inner_text(button) == before
    page.click(button)
    page.wait_for_function("() => streams.length === 2 && streams[1].active")
    playwright.expect(page.locator(button)).not_to_have_text(before)
    page.click("#tab-fill")
    page.wait_for_function(RELEASED, arg=2)


def test_a_recorder_that_cannot_be_loaded_lets_go_of_the_microphone(opened: Opened) -> None:
    page = opened.page
    page.click("#tab-transcribe")
    page.evaluate(ASK)
    page.evaluate("() => { AudioWorklet.prototype.addModule = async () => { throw new Error('offline'); }; }")
    page.click("#sound-record")
    page.evaluate("() => { window.allow(); }")
    opened.text("#transcribe-problem", "无法使用麦克风" if chinese(opened) else "The microphone cannot be used")
    page.wait_for_function(RELEASED, arg=1)


def test_the_longest_recording_ends_once_though_more_is_heard(opened: Opened) -> None:
    page = opened.page
    page.click("#tab-transcribe")
    page.evaluate(
        """() => {
          window.AudioWorkletNode = class extends AudioWorkletNode {
            constructor(...all) { super(...all); window.heard = (data) => this.port.onmessage({ data }); }
          };
          window.fetch = async () => new Response("");
        }"""
    )
    page.click("#sound-record")
    opened.text("#sound-record", "停止录音" if chinese(opened) else "Stop recording")
    page.evaluate("() => { for (const seconds of [241, 1]) window.heard(new Float32Array(48000 * seconds)); }")
    opened.text("#sound-name", "录音 · 4:" if chinese(opened) else "Recording · 4:")


def test_every_sample_that_the_recorder_hears_reaches_the_page(opened: Opened) -> None:
    """In the page itself, as nobody can tell when a real microphone has heard how much."""
    handed_over = opened.page.evaluate(
        """async () => {
          const found = [];
          const port = { postMessage: (block) => found.push(...block) };
          window.AudioWorkletProcessor = class { port = port; };
          const Processor = new Promise((found) => { window.registerProcessor = (name, made) => found(made); });
          await import(new URL("page/recorder-worklet.js", document.baseURI));
          const processor = new (await Processor)();
          const samples = new Float32Array(3);
          for (const value of [1, 2]) processor.process([[samples.fill(value)]]);
          processor.process([[]]); // a microphone that was unplugged
          return found;
        }"""
    )
    assert handed_over == [1, 1, 1, 2, 2, 2]

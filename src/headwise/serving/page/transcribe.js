// Text from sound: a file or the microphone. Segments appear as they are found; their times play the sound.
import { formOf, isAbort, postForEvents } from "./api.js";
import { byId, copyText, listenForFiles, make, show } from "./dom.js";
import { languageName, number, onLanguage, t } from "./language.js";
import { ModelPick } from "./models.js";
import { cut, decode, drawWave, Player, Recorder } from "./sounds.js";

const LONGEST = 240; // seconds of a recording
const MOST_LOOKED = 25; // segments that the Look view lists

export const start = (page) => new Transcribe(page);

class Transcribe {
  constructor({ onLook }) {
    this.running = null;
    this.recorder = null;
    this.wanted = null; // a Symbol from the click on Record until the recording is stopped or the view is left
    this.sound = null; // {file, name, buffer, number}
    this.segments = [];
    this.state = ""; // of the last run: done, stopped
    this.pick = new ModelPick("transcribe");
    this.player = new Player((seconds) => this._playing(seconds));
    this._listen(onLook);
    onLanguage(() => this._words());
  }

  _listen(onLook) {
    byId("sound-choose").addEventListener("click", () => byId("sound-file").click());
    byId("sound-file").addEventListener("change", (event) => {
      this._take(event.target.files[0]);
      event.target.value = "";
    });
    byId("sound-record").addEventListener("click", () => (this.recorder ? this._stopRecording() : this._record()));
    byId("sound-play").addEventListener("click", () => this._play(0));
    byId("transcribe-run").addEventListener("click", () => (this.running ? this.stop() : this.run()));
    byId("transcribe-look").addEventListener("click", onLook);
    byId("transcribe-copy").addEventListener("click", (event) =>
      copyText(event.currentTarget, this.segments.map(({ text }) => text).join("\n"), t("copy.done"), t("copy.failed")),
    );
    byId("transcribe").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run();
      if (event.key !== "Escape") return;
      this.player.stop();
      this.stop();
    });
    listenForFiles(byId("sound-drop"), (file) => this._take(file));
    document.addEventListener("theme", () => this._wave());
    addEventListener("resize", () => this._wave());
  }

  setModels(models) {
    this.pick.setModels(models);
    this._draw();
  }

  shown(visible) {
    if (visible) return this._wave();
    this.player.stop();
    this.wanted = null; // a microphone that is allowed from now on comes too late
    if (this.recorder) this._stopRecording();
  }

  /** Each segment with its own part of the sound. */
  lookable() {
    if (!this.sound?.buffer || this.running) return [];
    const { buffer, number: sound } = this.sound;
    return this.segments.slice(0, MOST_LOOKED).map(({ start, end, text, model }, place) => ({
      text: `${clock(start)} ${text}`,
      file: () => cut(buffer, start, end),
      number: [sound, place],
      model,
    }));
  }

  async run() {
    if (!this.sound) return;
    this.running?.abort();
    const controller = new AbortController();
    this.running = controller;
    [this.segments, this.state, this.summary] = [[], "running", null];
    byId("transcribe-problem").textContent = "";
    byId("segments").replaceChildren();
    this._draw();
    const model = this.pick.chosen.name;
    try {
      const form = formOf({ file: this.sound.file, model, stream: "true" });
      for await (const event of postForEvents("transcribe", form, controller.signal)) {
        if (this.running !== controller) return;
        if (event.done) [this.state, this.summary] = ["done", event];
        else this._append({ ...event.segment, model });
      }
    } catch (problem) {
      if (isAbort(problem) || this.running !== controller) return;
      byId("transcribe-problem").textContent = problem.message;
      this.state = "";
    }
    if (this.running !== controller) return;
    this.running = null;
    this._draw();
  }

  stop() {
    if (!this.running) return;
    this.running.abort();
    this.running = null;
    this.state = "stopped";
    this._draw();
  }

  // ---- the sound

  async _take(file, name = file?.name, samples = null) {
    if (!file) return;
    this.player.stop();
    this.stop();
    this.sound = { file, name, buffer: null, number: (this.sound?.number ?? 0) + 1 };
    const own = this.sound;
    this.segments = [];
    byId("segments").replaceChildren();
    this.run();
    own.buffer = samples ?? (await decode(file)); // a browser plays fewer formats than the server reads
    if (this.sound === own) this._draw();
  }

  async _record() {
    if (this.wanted) return; // the browser is still asking the reader
    const wanted = (this.wanted = Symbol("wanted"));
    byId("transcribe-problem").textContent = "";
    this.player.stop();
    try {
      const recorder = await Recorder.start((seconds) => this._recording(seconds));
      if (this.wanted !== wanted) return recorder.discard();
      this.recorder = recorder;
      this._recording(0);
    } catch {
      if (this.wanted !== wanted) return;
      this.wanted = null;
      byId("transcribe-problem").textContent = t(navigator.mediaDevices ? "sound.refused" : "sound.insecure");
    }
    this._draw();
  }

  _recording(seconds) {
    if (!this.recorder) return; // samples may arrive after it was stopped
    byId("sound-name").textContent = t("sound.recording", { time: clock(seconds) });
    if (seconds >= LONGEST) this._stopRecording();
  }

  async _stopRecording() {
    const { recorder } = this;
    this.recorder = this.wanted = null;
    const { wav, buffer } = await recorder.stop();
    this._take(wav, t("sound.recorded"), buffer);
  }

  _play(from) {
    if (!this.sound?.buffer) return;
    if (this.player.from === from) this.player.stop();
    else this.player.play(this.sound.buffer, from);
  }

  /** Marks what is being played; null: nothing is. */
  _playing(seconds) {
    [...byId("segments").children].forEach((row, place) => {
      const { start, end } = this.segments[place] ?? {};
      const current = seconds !== null && seconds >= start && seconds < end;
      row.classList.toggle("current", current);
    });
    byId("sound-play").textContent = t(seconds === null ? "sound.play" : "sound.stop");
    this._wave(seconds);
  }

  // ---- drawing

  _append(segment) {
    this.segments.push(segment);
    byId("segments").append(this._row(segment));
  }

  _row({ start, text }) {
    const time = make("button", { type: "button", class: "ghost time", onclick: () => this._play(start) }, clock(start));
    time.disabled = !this.sound?.buffer;
    time.setAttribute("aria-label", t("transcribe.play", { time: clock(start) }));
    return make("li", {}, time, make("span", { dir: "auto" }, text));
  }

  _wave(seconds = null) {
    if (this.sound?.buffer && !byId("transcribe").hidden) drawWave(byId("sound-wave"), this.sound.buffer, seconds);
  }

  _draw() {
    const busy = this.running !== null;
    byId("transcribe-pane").classList.toggle("busy", busy);
    byId("segments").setAttribute("aria-busy", String(busy));
    for (const button of byId("segments").querySelectorAll("button")) button.disabled = !this.sound?.buffer;
    if (!this.segments.length && !busy)
      byId("segments").replaceChildren(make("li", { class: "placeholder" }, t(this._emptyLine())));
    byId("transcribe-run").textContent = t(busy ? "generate.stop" : "transcribe.run");
    byId("transcribe-run").classList.toggle("primary", !busy);
    byId("transcribe-run").disabled = !this.sound || this.recorder !== null;
    byId("sound-record").textContent = t(this.recorder ? "sound.record.stop" : "sound.record");
    byId("sound-record").classList.toggle("recording", this.recorder !== null);
    byId("sound-choose").disabled = this.recorder !== null;
    if (!this.recorder) byId("sound-name").textContent = this._name();
    show(byId("sound-wave"), Boolean(this.sound?.buffer) && !this.recorder);
    show(byId("sound-play"), Boolean(this.sound?.buffer) && !this.recorder);
    byId("sound-play").textContent = t(this.player.from === null ? "sound.play" : "sound.stop");
    byId("transcribe-look").disabled = !this.lookable().length;
    byId("transcribe-copy").disabled = !this.segments.length;
    byId("transcribe-status").textContent = this._status();
    this._wave();
  }

  _emptyLine() {
    return this.state === "done" ? "transcribe.silence" : "transcribe.output.empty";
  }

  _name() {
    if (!this.sound) return t("sound.drop");
    const { name, buffer } = this.sound;
    return buffer ? `${name} · ${clock(buffer.duration)}` : name;
  }

  _status() {
    if (this.state === "done" && this.summary) {
      const seconds = number(this.summary.seconds, { maximumFractionDigits: 1 });
      const { language } = this.summary;
      return language ? t("transcribe.done.in", { seconds, language: languageName(language) }) : t("transcribe.done", { seconds });
    }
    return { running: t("transcribe.running"), stopped: t("generate.stopped") }[this.state] ?? "";
  }

  _words() {
    if (this.segments.length) byId("segments").replaceChildren(...this.segments.map((segment) => this._row(segment)));
    this._draw();
  }
}

/** 1:02.3 */
function clock(seconds) {
  const tenths = Math.round(10 * seconds);
  const rest = (tenths % 600) / 10;
  return `${Math.floor(tenths / 600)}:${rest < 10 ? "0" : ""}${rest.toFixed(1)}`;
}

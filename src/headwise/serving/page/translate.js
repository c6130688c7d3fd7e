// Translation as one types: only lines that are new are asked for, and an answer that is no longer wanted is cancelled.
import { isAbort, postJson } from "./api.js";
import { byId, copyText, show } from "./dom.js";
import { Glossary } from "./glossary.js";
import { languageName, number, onLanguage, t } from "./language.js";
import { Pairs } from "./pairs.js";
import { Result } from "./result.js";
import { recallDraft, rememberDraft } from "./settings.js";

const PAUSE = 300; // milliseconds without a key before the server is asked
const ALTERNATIVES = 3;
const TOGETHER = 50; // lines in a request
const KEPT = 2000; // lines whose translations are remembered
const LONGEST_WAIT = 10; // seconds until a busy server is asked again by itself

export const start = ({ onLook }) => new Translate(onLook);

class Translate {
  constructor(onLook) {
    this.limit = null;
    this.running = null; // the AbortController of the request under way
    this.timer = null;
    this.known = new Map(); // what was asked, as JSON → its answer
    this.answered = null; // the request whose answer is shown
    this.input = byId("source-text");
    this.result = new Result();
    this.pairs = new Pairs(() => this.changed(0));
    this.glossary = new Glossary(() => this.changed(PAUSE));
    this.input.value = recallDraft("text");
    this._listen(onLook);
    onLanguage(() => this._words());
  }

  _listen(onLook) {
    this.input.addEventListener("input", () => this.changed(PAUSE));
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.changed(0);
    });
    byId("translate").addEventListener("keydown", (event) => event.key === "Escape" && this.cancel());
    byId("translate-run").addEventListener("click", () => (this.busy ? this.cancel() : this.changed(0)));
    byId("source-clear").addEventListener("click", () => {
      this.input.value = "";
      this.changed(0);
      this.input.focus();
    });
    byId("swap").addEventListener("click", () => this._swap());
    byId("alternatives-box").addEventListener("toggle", () => {
      if (byId("alternatives-box").open) this.changed(0);
    });
    byId("translate-look").addEventListener("click", onLook);
    byId("output-copy").addEventListener("click", (event) =>
      copyText(event.currentTarget, this.result.text, t("copy.done"), t("copy.failed")),
    );
  }

  setModels(models, limit) {
    this.limit = limit;
    this.pairs.setModels(models);
    this._words();
    this.changed(0);
  }

  get busy() {
    return this.running !== null || this.timer !== null;
  }

  /** Something that decides the translation changed: what is under way is for nothing. */
  changed(pause) {
    this._stop();
    this.glossary.open(this.pairs.chosen);
    rememberDraft("text", this.input.value);
    this.fit();
    this._problem(this._tooLong());
    if (this.input.value.trim() === "") {
      this.answered = null;
      this.result.clear();
    } else if (!this._tooLong()) {
      this.timer = setTimeout(() => this._run(), pause);
    }
    this._buttons();
  }

  cancel() {
    if (!this.busy) return;
    this._stop();
    this._say(t("translate.cancelled"));
    this._buttons();
  }

  /** Texts with the translations that are shown, for the Look view. */
  lookable() {
    if (this.answered === null) return [];
    const sources = this.answered.text.split("\n");
    const targets = this.result.text.split("\n");
    const model = this.answered.pair.model ?? this.answered.model;
    if (sources.length !== targets.length) return [{ text: this.answered.text, target: this.result.text, model }];
    const lines = sources.map((text, place) => ({ text: text.trim(), target: targets[place].trim(), model }));
    return lines.filter(({ text, target }) => text && target);
  }

  shown() {
    this.fit();
  }

  /** As high as its text, so that nothing scrolls inside of the page. */
  fit() {
    this.input.style.height = "auto";
    this.input.style.height = `${this.input.scrollHeight}px`;
  }

  async _run(attempt = 0) {
    this.timer = null;
    const asked = this._question();
    const controller = new AbortController();
    this.running = controller;
    this._buttons();
    this._say(t("translate.running"));
    try {
      await this._ask(asked, controller.signal);
      if (this.running !== controller) return;
      this.running = null;
      this._problem("");
      this._answer(asked);
    } catch (problem) {
      if (isAbort(problem) || this.running !== controller) return;
      this.running = null;
      this._failed(problem, attempt);
    }
    this._buttons();
  }

  _question() {
    const pair = this.pairs.chosen;
    const text = this.input.value;
    // A language is better detected from the whole text than line by line.
    const units = pair.source === "auto" ? [text] : text.split("\n");
    const common = { source: pair.source, target: pair.target, details: true };
    if (pair.model) common.model = pair.model;
    if (Object.keys(this.glossary.terms).length) common.glossary = this.glossary.terms;
    if (byId("alternatives-box").open) common.alternatives = ALTERNATIVES;
    const place = (unit) => JSON.stringify([common, unit.trim()]);
    return { text, pair, units, common, place };
  }

  async _ask({ units, common, place }, signal) {
    const missing = [...new Set(units.map((unit) => unit.trim()))].filter(
      (unit) => unit && !this.known.has(place(unit)),
    );
    for (let start = 0; start < missing.length; start += TOGETHER) {
      const asked = missing.slice(start, start + TOGETHER);
      const answer = await postJson("translate", { ...common, q: asked }, signal);
      asked.forEach((unit, number) => this.known.set(place(unit), answerOf(answer, number)));
    }
    for (const key of [...this.known.keys()].slice(0, Math.max(0, this.known.size - KEPT))) this.known.delete(key);
  }

  _answer(asked) {
    const found = asked.units.map((unit) => (unit.trim() ? this.known.get(asked.place(unit)) : null));
    const detected = found.find((each) => each?.detected)?.detected?.language;
    byId("detected").textContent = detected ? t("translate.detected", { language: languageName(detected) }) : "";
    this.answered = { ...asked, found, model: found.find((each) => each?.details)?.details.model ?? null };
    const indents = asked.units.map((unit) => (unit.trim() ? /^[^\S\n]*/.exec(unit)[0] : unit));
    this.result.show(found, indents, asked.pair.target, byId("alternatives-box").open);
    this._say(t("translate.done"));
  }

  _failed(problem, attempt) {
    const seconds = problem.status === 429 || problem.status === 503 ? problem.retryAfter : null;
    if (seconds === null || seconds > LONGEST_WAIT || attempt >= 3) {
      this._problem(problem.message);
      this._say("");
      return;
    }
    const wait = Math.max(1, seconds);
    this._problem(t("error.retrying", { message: problem.message, seconds: wait }));
    this.timer = setTimeout(() => {
      this._problem("");
      this._run(attempt + 1);
    }, 1000 * wait);
  }

  _stop() {
    clearTimeout(this.timer);
    this.timer = null;
    const running = this.running;
    this.running = null;
    running?.abort();
  }

  _swap() {
    const translated = this.result.text;
    this.pairs.swap();
    if (translated) this.input.value = translated;
    this.changed(0);
  }

  _tooLong() {
    const count = [...this.input.value].length;
    if (this.limit === null || count <= this.limit) return "";
    return t("error.long", { count: number(count), limit: number(this.limit) });
  }

  _problem(line) {
    byId("translate-problem").textContent = line;
  }

  _say(line) {
    byId("translate-status").textContent = line;
  }

  _buttons() {
    const asking = this.running !== null;
    byId("translate-run").textContent = t(asking ? "cancel" : "translate.run");
    byId("translate-run").classList.toggle("primary", !asking);
    byId("translate-run").disabled = this.input.value.trim() === "" || Boolean(this._tooLong());
    show(byId("source-clear"), this.input.value !== "");
    this.result.setState({ busy: asking, stale: this.answered !== null && this.answered.text !== this.input.value });
    const count = number([...this.input.value].length);
    byId("character-number").textContent = this.limit === null ? count : `${count} / ${number(this.limit)}`;
    byId("character-count").classList.toggle("too-long", Boolean(this._tooLong()));
  }

  _words() {
    this._buttons();
    this.result.redraw();
  }
}

/** What the server says of one of the texts that it was asked for. */
function answerOf({ translatedText, alternatives, details, detectedLanguage }, number) {
  return {
    text: translatedText[number],
    alternatives: alternatives?.[number] ?? [],
    details: details?.[number] ?? null,
    detected: [detectedLanguage ?? []].flat()[number] ?? null,
  };
}

// The lines of a text that mean most nearly the same as a query. Vectors come from the server; comparing is done here.
import { isAbort, postJson } from "./api.js";
import { byId, make } from "./dom.js";
import { number, onLanguage, t } from "./language.js";
import { ModelPick } from "./models.js";
import { recallDraft, rememberDraft } from "./settings.js";

const TOGETHER = 100; // lines in a request
const CHARACTERS = 20000; // of the lines in a request
const LONGEST = 2000; // characters of a line that are read
const MOST_LINES = 5000;
const SHOWN = 10;
const PAUSE = 400; // milliseconds without a key before the query is searched for

export const start = (page) => new Search(page);

class Search {
  constructor({ onLook }) {
    this.running = null;
    this.timer = null;
    this.known = new Map(); // vectors by line, of one model
    this.answer = null; // {query, model, found: [{line, text, score}]}
    this.done = null; // lines embedded so far, and all
    this.input = byId("search-text");
    this.query = byId("search-query");
    this.pick = new ModelPick("search", () => this._forget());
    this.input.value = recallDraft("search");
    this.query.value = recallDraft("query");
    this.input.addEventListener("input", () => {
      rememberDraft("search", this.input.value);
      this._count();
    });
    this.query.addEventListener("input", () => {
      rememberDraft("query", this.query.value);
      clearTimeout(this.timer);
      if (this.answer) this.timer = setTimeout(() => this.run(), PAUSE); // the lines are known already
    });
    byId("search-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.run();
    });
    byId("search").addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.running?.abort();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run();
    });
    byId("search-look").addEventListener("click", onLook);
    onLanguage(() => this._draw());
  }

  setModels(models) {
    this.pick.setModels(models);
    this._forget();
  }

  lookable() {
    return this.answer ? [{ text: this.answer.query, model: this.answer.model }] : [];
  }

  async run() {
    clearTimeout(this.timer);
    const query = this.query.value.trim();
    const lines = this._lines();
    if (!query || !lines.length) return;
    this.running?.abort();
    const controller = new AbortController();
    this.running = controller;
    byId("search-problem").textContent = "";
    this._draw();
    try {
      const model = this.pick.chosen.name;
      await this._embed([query, ...lines.map(({ text }) => text)], model, controller.signal);
      if (this.running !== controller) return;
      const wanted = this.known.get(query.slice(0, LONGEST));
      const scored = lines.map((line) => ({ ...line, score: product(wanted, this.known.get(line.text)) }));
      const found = scored.sort((a, b) => b.score - a.score).slice(0, SHOWN);
      this.answer = { query, model, found, lines: lines.length };
    } catch (problem) {
      if (this.running !== controller) return;
      if (!isAbort(problem)) byId("search-problem").textContent = problem.message;
    }
    this.running = this.done = null;
    this._draw();
  }

  /** Asks for the vectors of lines that are not known yet. */
  async _embed(texts, model, signal) {
    const missing = [...new Set(texts.map((text) => text.slice(0, LONGEST)))].filter((text) => !this.known.has(text));
    const all = missing.length;
    while (missing.length) {
      const part = [missing.shift()];
      let characters = part[0].length;
      while (missing.length && part.length < TOGETHER && characters + missing[0].length <= CHARACTERS) {
        characters += missing[0].length;
        part.push(missing.shift());
      }
      const { vectors } = await postJson("embed", { text: part, model, encoding: "base64" }, signal);
      part.forEach((text, place) => this.known.set(text, floats(vectors[place])));
      this.done = [all - missing.length, all];
      this._status();
    }
  }

  _lines() {
    const lines = this.input.value.split("\n").map((text, place) => ({ line: place + 1, text: text.trim().slice(0, LONGEST) }));
    return lines.filter(({ text }) => text).slice(0, MOST_LINES);
  }

  /** Vectors of another model cannot be compared with these. */
  _forget() {
    this.running?.abort();
    this.known.clear();
    this.answer = null;
    this._draw();
  }

  /** Marks a line in the text. */
  _show(line) {
    const lines = this.input.value.split("\n");
    if (line > lines.length) return; // the text has become shorter since
    const from = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    this.input.focus();
    this.input.setSelectionRange(from, from + lines[line - 1].length);
    this.input.scrollTop = (this.input.scrollHeight * (line - 3)) / lines.length;
  }

  _draw() {
    const busy = this.running !== null;
    byId("search-pane").classList.toggle("busy", busy);
    byId("search-answers").setAttribute("aria-busy", String(busy));
    byId("search-look").disabled = this.answer === null;
    const rows = this.answer?.found.map((found) => this._row(found));
    byId("search-answers").replaceChildren(
      rows ? make("ol", { class: "bars nearest" }, ...rows) : make("p", { class: "placeholder" }, t("search.output.empty")),
    );
    this._count();
    this._status();
  }

  _row({ line, text, score }) {
    const bar = make("span", { class: "meter", "aria-hidden": "true" }, make("span"));
    bar.firstChild.style.width = `${Math.max(1, 100 * score)}%`;
    const label = t("search.show", { line, text });
    const button = make("button", { type: "button", class: "ghost", "aria-label": label, dir: "auto", onclick: () => this._show(line) }, text);
    return make("li", {}, button, make("span", { class: "share" }, number(score, { minimumFractionDigits: 2 })), bar);
  }

  _count() {
    const count = this._lines().length;
    byId("search-count").textContent = t(count >= MOST_LINES ? "search.count.most" : "search.count", { count: number(count) });
  }

  _status() {
    const [done, all] = this.done ?? [];
    const line = this.running ? t("search.running", { done: number(done ?? 0), all: number(all ?? 0) }) : "";
    byId("search-status").textContent = this.running && !this.done ? "" : line;
  }
}

function floats(coded) {
  const bytes = Uint8Array.from(atob(coded), (sign) => sign.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

function product(a, b) {
  let sum = 0;
  for (let n = 0; n < a.length; n += 1) sum += a[n] * b[n];
  return sum;
}

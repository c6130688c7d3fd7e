// Text from a language model, shown while it is written.
import { isAbort, postForEvents } from "./api.js";
import { byId, copyText, make } from "./dom.js";
import { number, onLanguage, t } from "./language.js";
import { ModelPick } from "./models.js";
import { recall, recallDraft, remember, rememberDraft } from "./settings.js";

const FIELDS = { temperature: 0.8, "top-p": 0.95, "max-tokens": 120, seed: "" };
const LOOKED_AT = 300; // characters of a generated text that the Look view is given

export const start = () => new Generate();

class Generate {
  constructor() {
    this.pick = new ModelPick("generate");
    this.running = null;
    this.prompt = ""; // what the text on show began with
    this.written = "";
    this.input = byId("prompt");
    this.input.value = recallDraft("prompt");
    const stored = recall("generate", {});
    for (const [id, value] of Object.entries(FIELDS)) {
      byId(id).value = stored[id] ?? value;
      if (byId(id).value === "" && value !== "") byId(id).value = value;
      byId(id).addEventListener("input", () => this._settings());
    }
    this._listen();
    onLanguage(() => this._words());
  }

  _listen() {
    byId("generate-run").addEventListener("click", () => (this.running ? this.stop() : this.run()));
    byId("generate-continue").addEventListener("click", () => this.run(this.prompt + this.written));
    byId("generate-clear").addEventListener("click", () => {
      this.prompt = this.written = "";
      this._status("");
      this._draw();
      this.input.focus();
    });
    byId("generated-copy").addEventListener("click", (event) =>
      copyText(event.currentTarget, this.prompt + this.written, t("copy.done"), t("copy.failed")),
    );
    this.input.addEventListener("input", () => rememberDraft("prompt", this.input.value));
    byId("generate").addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.stop();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run();
    });
  }

  setModels(models) {
    this.pick.setModels(models);
    this._draw();
  }

  lookable() {
    const text = (this.prompt + this.written).trim().slice(-LOOKED_AT);
    return text && this.written && !this.running
      ? [{ text, model: this.pick.chosen.name, generated: true }]
      : [];
  }

  async run(prompt = this.input.value) {
    this.running?.abort();
    const controller = new AbortController();
    this.running = controller;
    const goesOn = this.written !== "" && prompt === this.prompt + this.written;
    this.prompt = goesOn ? this.prompt : prompt;
    this.written = goesOn ? this.written : "";
    byId("generate-problem").textContent = "";
    this._status(t("generate.running"));
    this._draw();
    try {
      for await (const event of postForEvents("generate", this._question(prompt), controller.signal)) {
        if (this.running !== controller) return;
        if (event.done) this._status(t(event.stopped === "stop" ? "generate.done.stop" : "generate.done.length"));
        else this._append(event.text ?? "");
      }
    } catch (problem) {
      if (isAbort(problem) || this.running !== controller) return;
      byId("generate-problem").textContent = problem.message;
      this._status("");
    }
    if (this.running !== controller) return;
    this.running = null;
    this._draw();
  }

  stop() {
    if (!this.running) return;
    this.running.abort();
    this.running = null;
    this._status(t("generate.stopped"));
    this._draw();
  }

  _question(prompt) {
    const seed = Number.parseInt(byId("seed").value, 10);
    return {
      prompt,
      model: this.pick.chosen.name,
      temperature: Number(byId("temperature").value),
      top_p: Number(byId("top-p").value),
      max_tokens: Math.max(1, Math.round(Number(byId("max-tokens").value)) || FIELDS["max-tokens"]),
      ...(Number.isInteger(seed) ? { seed } : {}),
      stream: true,
    };
  }

  _append(text) {
    this.written += text;
    byId("generated").querySelector(".written").append(text);
  }

  _settings() {
    byId("temperature-value").textContent = number(Number(byId("temperature").value), { minimumFractionDigits: 2 });
    byId("top-p-value").textContent = number(Number(byId("top-p").value), { minimumFractionDigits: 2 });
    remember("generate", Object.fromEntries(Object.keys(FIELDS).map((id) => [id, byId(id).value])));
  }

  _status(line) {
    byId("generate-status").textContent = line;
  }

  _draw() {
    const busy = this.running !== null;
    const empty = !busy && this.written === "" && this.prompt === "";
    byId("generated-pane").classList.toggle("busy", busy);
    byId("generated").setAttribute("aria-busy", String(busy));
    byId("generated").replaceChildren(
      ...(empty
        ? [make("span", { class: "placeholder" }, t("generate.output.empty"))]
        : [make("span", { class: "given" }, this.prompt), make("span", { class: "written" }, this.written)]),
    );
    byId("generate-run").textContent = t(busy ? "generate.stop" : "generate.run");
    byId("generate-run").classList.toggle("primary", !busy);
    byId("generate-continue").disabled = busy || this.written === "";
    byId("generate-clear").disabled = busy || empty;
    byId("generated-copy").disabled = empty;
  }

  _words() {
    this._settings();
    if (!this.running) this._status("");
    this._draw();
  }
}

// What the views have in common that send one text and show an answer: models, the text, progress and problems.
import { isAbort, postJson } from "./api.js";
import { byId, fillSelect, make, show } from "./dom.js";
import { number, onLanguage } from "./language.js";
import { recallDraft, rememberDraft } from "./settings.js";

/** Elements have the view's name before theirs: classify-text, classify-run, … */
export class Asking {
  constructor(name) {
    this.name = name;
    this.running = null;
    this.answer = null;
    this.input = this.part("text");
    this.input.value = recallDraft(name);
    this.input.addEventListener("input", () => this.typed());
    this.part("run").addEventListener("click", () => this.run());
    byId(name).addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.running?.abort();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run();
    });
    onLanguage(() => this.draw());
  }

  part(which) {
    return byId(`${this.name}-${which}`);
  }

  setModels(models) {
    const own = models.filter(({ kind, reads }) => kind === this.name && reads === "text");
    fillSelect(
      this.part("model"),
      own.map(({ name, title }) => [name, title || name]),
    );
    show(this.part("model-pick"), own.length > 1);
  }

  typed() {
    rememberDraft(this.name, this.input.value);
  }

  async run() {
    if (!this.input.value.trim()) return;
    this.running?.abort();
    const controller = new AbortController();
    this.running = controller;
    this._busy(true);
    this.part("problem").textContent = "";
    try {
      const body = { text: this.input.value, model: this.part("model").value, top: 5 };
      const { answers } = await postJson(this.name, body, controller.signal);
      if (this.running !== controller) return;
      this.answer = answers[0];
    } catch (problem) {
      if (this.running !== controller) return;
      if (!isAbort(problem)) this.part("problem").textContent = problem.message;
    }
    this.running = null;
    this._busy(false);
    this.draw();
  }

  _busy(busy) {
    this.part("pane").classList.toggle("busy", busy);
    this.part("answers").setAttribute("aria-busy", String(busy));
  }
}

/** A list of names with their probabilities as bars; with `onChoose`, each name is a button. */
export function bars(entries, onChoose = null) {
  const items = entries.map(({ name, probability }) => {
    const bar = make("span", { class: "meter", "aria-hidden": "true" }, make("span"));
    bar.firstChild.style.width = `${Math.max(1, 100 * probability)}%`;
    const label = onChoose
      ? make("button", { type: "button", class: "ghost", onclick: () => onChoose(name) }, name)
      : make("span", { class: "name" }, name);
    const share = number(probability, { style: "percent", maximumFractionDigits: 1 });
    return make("li", {}, label, make("span", { class: "share" }, share), bar);
  });
  return make("ol", { class: "bars" }, ...items);
}

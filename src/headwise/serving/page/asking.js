// What the views have in common that send one item and show an answer: models, the text, progress and problems.
import { isAbort, postJson } from "./api.js";
import { byId, make } from "./dom.js";
import { number, onLanguage } from "./language.js";
import { ModelPick } from "./models.js";
import { recallDraft, rememberDraft } from "./settings.js";

/** Elements have the view's name before theirs: classify-text, classify-run, … */
export class Asking {
  constructor(name, { onLook }) {
    this.name = name;
    this.running = null;
    this.answer = null;
    this.answered = null; // what the answer is about
    this.pick = new ModelPick(name, () => this.picked());
    this.part("look").addEventListener("click", onLook);
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
    this.pick.setModels(models);
    return this.picked();
  }

  /** Another model was chosen: what the one before said is no longer an answer. */
  picked() {
    this.running?.abort();
    this.answer = this.answered = null;
    this.draw();
  }

  typed() {
    rememberDraft(this.name, this.input.value);
  }

  /** The item as the server wants it and as the Look view wants it; null: there is none yet. */
  question() {
    const text = this.input.value;
    if (!text.trim()) return null;
    const model = this.pick.chosen.name;
    return { body: { text, model, top: 5 }, item: { text, model } };
  }

  lookable() {
    return this.answered === null ? [] : [this.answered];
  }

  async run() {
    const question = this.question();
    if (question === null) return;
    this.running?.abort();
    const controller = new AbortController();
    this.running = controller;
    this._busy(true);
    this.part("problem").textContent = "";
    try {
      const { answers } = await postJson(this.name, question.body, controller.signal);
      if (this.running !== controller) return;
      [this.answer, this.answered] = [answers[0], question.item];
    } catch (problem) {
      if (this.running !== controller) return;
      if (!isAbort(problem)) this.part("problem").textContent = problem.message;
    }
    this.running = null;
    this._busy(false);
    this.draw();
  }

  draw() {
    this.part("look").disabled = this.answered === null;
  }

  _busy(busy) {
    this.part("pane").classList.toggle("busy", busy);
    this.part("answers").setAttribute("aria-busy", String(busy));
  }
}

/** A list of names with their probabilities as bars; with `onChoose`, each name is a button; one may be `chosen`. */
export function bars(entries, onChoose = null, chosen = null) {
  const items = entries.map(({ name, probability }) => {
    const bar = make("span", { class: "meter", "aria-hidden": "true" }, make("span"));
    bar.firstChild.style.width = `${Math.max(1, 100 * probability)}%`;
    const label = onChoose
      ? make("button", { type: "button", class: "ghost", "aria-pressed": chosen === name ? "true" : null, onclick: () => onChoose(name) }, name)
      : make("span", { class: "name" }, name);
    const share = number(probability, { style: "percent", maximumFractionDigits: 1 });
    return make("li", {}, label, make("span", { class: "share" }, share), bar);
  });
  return make("ol", { class: "bars" }, ...items);
}

// Which language, to which, by which model: three pickers that only ever offer what the server has.
import { byId, fillSelect } from "./dom.js";
import { languageName, onLanguage, t } from "./language.js";
import { ModelPick } from "./models.js";
import { recall, remember } from "./settings.js";

const AUTO = "auto";

export class Pairs {
  /** `changed()` is called when the reader picked something else. */
  constructor(changed) {
    this.models = [];
    this.source = byId("source-language");
    this.target = byId("target-language");
    this.model = new ModelPick("translate", () => this._picked(changed));
    this.source.addEventListener("change", () => this._picked(changed));
    this.target.addEventListener("change", () => this._picked(changed));
    onLanguage(() => this.draw());
  }

  setModels(models) {
    this.models = models.filter(({ kind }) => kind === "translate");
    const last = recall("pair", {});
    this.draw(last);
  }

  /** What a request must say. */
  get chosen() {
    return { source: this.source.value || AUTO, target: this.target.value, model: this.model.chosen?.name ?? null };
  }

  get canSwap() {
    const { source, target } = this.chosen;
    return this.models.some(({ languages }) => languages[0] === target && languages.includes(source, 1));
  }

  swap() {
    const { source, target } = this.chosen;
    this.draw({ source: target, target: source });
    remember("pair", this.chosen);
  }

  draw(wanted = this.chosen) {
    const sources = [...new Set(this.models.map(({ languages }) => languages[0] ?? ""))];
    const offered = sources.map((code) => [code, nameOf(code)]);
    if (sources.length > 1) offered.push([AUTO, t("translate.detect")]);
    fillSelect(this.source, offered, wanted.source);
    const from = this.models.filter((model) => this._reads(model));
    const targets = [...new Set(from.flatMap(({ languages }) => (languages.length > 1 ? languages.slice(1) : [""])))];
    fillSelect(
      this.target,
      targets.map((code) => [code, nameOf(code)]),
      wanted.target,
    );
    const fitting = from.filter(({ languages }) => languages.includes(this.target.value, 1) || languages.length < 2);
    // Where the language is detected, the server finds the model for it.
    this.model.setModels(this.source.value === AUTO ? [] : fitting, wanted.model);
    const swap = byId("swap");
    swap.disabled = !this.canSwap;
    swap.title = t(this.canSwap ? "translate.swap" : "translate.swap.none");
  }

  _reads({ languages }) {
    return this.source.value === AUTO || (languages[0] ?? "") === this.source.value;
  }

  _picked(changed) {
    this.draw();
    remember("pair", this.chosen);
    changed();
  }
}

const nameOf = (code) => (code === "" ? "—" : languageName(code));

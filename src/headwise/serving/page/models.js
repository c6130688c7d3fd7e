// Which model a view asks, and behind its name the model's card.
import { byId, fillSelect, make, show } from "./dom.js";
import { onLanguage, t } from "./language.js";

/** Elements have the view's name before theirs: classify-model, classify-model-pick. */
export class ModelPick {
  /** `changed()` is called when the reader picked another model. */
  constructor(view, changed = () => {}) {
    this.models = [];
    this.select = byId(`${view}-model`);
    this.place = byId(`${view}-model-pick`);
    this.about = make("button", { type: "button", class: "ghost about", "aria-haspopup": "dialog" });
    this.about.addEventListener("click", async () => (await import("./card.js")).openCard(this.chosen));
    this.place.append(this.about);
    this.select.addEventListener("change", () => {
      this.draw();
      changed();
    });
    onLanguage(() => this.draw());
  }

  setModels(models, wanted = this.select.value) {
    this.models = models;
    fillSelect(
      this.select,
      models.map(({ name, title }) => [name, title || name]),
      wanted,
    );
    this.draw();
  }

  get chosen() {
    return this.models.find(({ name }) => name === this.select.value);
  }

  draw() {
    show(this.place, this.models.length > 0);
    show(this.select, this.models.length > 1);
    if (!this.chosen) return;
    const name = this.chosen.title || this.chosen.name;
    this.about.textContent = this.models.length > 1 ? t("card.about") : name;
    this.about.setAttribute("aria-label", t("card.open", { name }));
  }
}

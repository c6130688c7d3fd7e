// The glossary box: rows of a term and the translation that it must have, kept for each pair of languages.
import { byId, make } from "./dom.js";
import { onLanguage, t } from "./language.js";
import { recall, remember } from "./settings.js";

export class Glossary {
  /** `changed()` is called when the terms that count are others than before. */
  constructor(changed) {
    this.changed = changed;
    this.rows = [];
    this.place = "glossary";
    byId("glossary-add").addEventListener("click", () => this._add());
    onLanguage(() => this._draw());
  }

  open(pair) {
    const place = `glossary.${pair.source}.${pair.target}`;
    if (place === this.place) return;
    this.place = place;
    const stored = recall(place, []);
    const valid = (row) => Array.isArray(row) && row.length === 2 && row.every((part) => typeof part === "string");
    this.rows = Array.isArray(stored) ? stored.filter(valid) : [];
    this._draw();
  }

  /** Term → translation, of the rows that have both. */
  get terms() {
    const whole = this.rows.map((row) => row.map((part) => part.trim())).filter(([term, required]) => term && required);
    return Object.fromEntries(whole);
  }

  _add() {
    this.rows.push(["", ""]);
    this._draw();
    byId("glossary-rows").lastElementChild.querySelector("input").focus();
  }

  _remove(place) {
    this.rows.splice(place, 1);
    this._draw();
    const rows = byId("glossary-rows").children;
    (rows[Math.min(place, rows.length - 1)]?.querySelector("input") ?? byId("glossary-add")).focus();
    this._keep();
  }

  _keep() {
    remember(this.place, this.rows);
    this._title();
    this.changed();
  }

  _title() {
    const count = Object.keys(this.terms).length;
    byId("glossary-title").textContent = count ? t("glossary.count", { count }) : t("glossary.title");
  }

  _draw() {
    this._title();
    byId("glossary-rows").replaceChildren(...this.rows.map((row, place) => this._row(row, place)));
  }

  _row(row, place) {
    const field = (side, label) =>
      make("input", {
        type: "text",
        dir: "auto",
        value: row[side],
        "aria-label": t(label),
        placeholder: t(label),
        oninput: (event) => {
          row[side] = event.target.value;
          this._keep();
        },
        onkeydown: (event) => event.key === "Enter" && !event.isComposing && this._add(),
      });
    const label = t("glossary.remove", { term: row[0] });
    const remove = make(
      "button",
      { type: "button", class: "icon", "aria-label": label, title: label, onclick: () => this._remove(place) },
      "×",
    );
    return make(
      "li",
      {},
      field(0, "glossary.term"),
      make("span", { "aria-hidden": "true" }, "→"),
      field(1, "glossary.required"),
      remove,
    );
  }
}

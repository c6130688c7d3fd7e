// The label of a text, and how probable each label is.
import { Asking, bars } from "./asking.js";
import { make } from "./dom.js";
import { t } from "./language.js";

export const start = () => new Classify("classify");

class Classify extends Asking {
  draw() {
    this.part("answers").replaceChildren(
      ...(this.answer
        ? [
            make("p", { class: "verdict-label" }, this.answer.label),
            bars(this.answer.top.map(({ label, probability }) => ({ name: label, probability }))),
          ]
        : [make("p", { class: "placeholder" }, t("classify.output.empty"))]),
    );
  }
}

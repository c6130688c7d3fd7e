// What belongs into the gaps of a text. A click on a word makes a gap of it, a click on a candidate fills the gap.
import { Asking, bars } from "./asking.js";
import { make } from "./dom.js";
import { t } from "./language.js";

const GAP = "[MASK]";
// Words with their letters; in writing without spaces, single characters.
const WORDS = /\[MASK\]|\p{Script=Han}|[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu;

export const start = (page) => new Fill("fill", page);

class Fill extends Asking {
  typed() {
    super.typed();
    this._words();
  }

  draw() {
    super.draw();
    this._words();
    const gaps = this.answer?.gaps.map((candidates, number) => [
      make("h3", {}, t("fill.gap", { number: number + 1 })),
      bars(
        candidates.map(({ text, probability }) => ({ name: text, probability })),
        (name) => this._put(candidates.find(({ text }) => text === name).filled),
      ),
    ]);
    this.part("answers").replaceChildren(
      ...(gaps
        ? [make("p", { class: "verdict-label" }, this.answer.text), ...gaps.flat()]
        : [make("p", { class: "placeholder" }, t("fill.output.empty"))]),
    );
  }

  /** The words of the text as buttons. */
  _words() {
    const buttons = [...this.input.value.matchAll(WORDS)].map((found) =>
      make(
        "button",
        {
          type: "button",
          class: found[0] === GAP ? "word gap" : "word",
          disabled: found[0] === GAP,
          "aria-label": t("fill.hide", { word: found[0] }),
          onclick: () => this._hide(found.index, found[0].length),
        },
        found[0],
      ),
    );
    this.part("words").replaceChildren(...buttons);
  }

  _hide(start, length) {
    const text = this.input.value;
    this._put(text.slice(0, start) + GAP + text.slice(start + length));
    this.run();
  }

  _put(text) {
    this.input.value = text;
    this.typed();
    this.input.focus();
  }
}

// The label of a text, a pair of texts or a picture, how probable each label is, and what moved it.
import { formOf, isAbort, postJson } from "./api.js";
import { Asking, bars } from "./asking.js";
import { byId, make, show } from "./dom.js";
import { number, t } from "./language.js";
import { recallDraft, rememberDraft } from "./settings.js";

export const start = (page) => new Classify("classify", page);

class Classify extends Asking {
  constructor(name, page) {
    super(name, page);
    this.pictures = null; // loaded when there is a model that reads pictures
    this.asking = null; // the AbortController of the question about what moved the label
    this.second = this.part("second"); // of a model that reads pairs
    this.second.value = recallDraft("classify-second");
    this.second.addEventListener("input", () => rememberDraft("classify-second", this.second.value));
    byId("moved-box").addEventListener("toggle", () => this._explain());
  }

  get _reads() {
    return this.pick.chosen?.reads;
  }

  async picked() {
    super.picked();
    if (this._reads === "image" && this.pictures === null) {
      const { Pictures } = await import("./pictures.js");
      this.pictures ??= new Pictures(
        () => byId("classify").hidden || this._reads !== "image",
        (problem) => {
          this.part("problem").textContent = problem;
          if (!problem) this.run();
        },
      );
    }
    const isPicture = this._reads === "image"; // asked here: another model may have been chosen meanwhile
    this.pictures?.show(isPicture);
    show(this.input, !isPicture);
    show(this.second, this._reads === "pair");
    this.draw();
  }

  shown(visible) {
    if (!visible) this.pictures?.stopCamera();
  }

  question() {
    if (this._reads === "text") return super.question();
    if (this._reads === "pair") return this._pair();
    const taken = this.pictures?.taken;
    if (!taken) return null;
    const model = this.pick.chosen.name;
    const item = { text: taken.name || t("picture.unnamed"), file: async () => taken.blob, number: taken.number, model };
    return { body: formOf({ image: taken.blob, model, top: 5 }), item };
  }

  /** Both texts; the Look view gets them with a tab between, as `headwise look` does. */
  _pair() {
    const [text, second] = [this.input.value, this.second.value].map((one) => one.replaceAll("\t", " "));
    if (!text.trim() || !second.trim()) return null;
    const model = this.pick.chosen.name;
    return { body: { text, second, model, top: 5 }, item: { text: `${text}\t${second}`, model } };
  }

  async run() {
    this.target = null;
    await super.run();
    this._explain();
  }

  draw() {
    super.draw();
    show(byId("moved-box"), this.answer !== null);
    const hint = this._reads === "image" ? "classify.output.picture" : "classify.output.empty";
    this.part("answers").replaceChildren(
      ...(this.answer
        ? [
            make("p", { class: "verdict-label" }, this.answer.label),
            bars(
              this.answer.top.map(({ label, probability }) => ({ name: label, probability })),
              (label) => this._ask(label),
              byId("moved-box").open ? (this.target ?? this.answer.label) : null,
            ),
          ]
        : [make("p", { class: "placeholder" }, t(hint))]),
    );
    this._drawMoved();
  }

  /** A click on a label asks what spoke for that one. */
  _ask(label) {
    this.target = label;
    if (byId("moved-box").open) this._explain();
    else byId("moved-box").open = true; // which asks
  }

  async _explain() {
    this.asking?.abort();
    this.moved = null;
    if (this.answered === null) return;
    if (!byId("moved-box").open) return this.draw();
    const controller = new AbortController();
    this.asking = controller;
    this.draw();
    try {
      const { text, file, model } = this.answered;
      const fields = { target: this.target ?? this.answer.label, model, format: "json" };
      const body = file ? formOf({ file: await file(), ...fields }) : { text, ...fields };
      this.moved = await postJson("look", body, controller.signal);
    } catch (problem) {
      if (isAbort(problem)) return;
      this.moved = { problem: problem.message };
    }
    this.draw();
  }

  _drawMoved() {
    const { moved } = this;
    if (!moved) {
      byId("moved").replaceChildren(make("p", { class: "quiet" }, t("moved.running")));
    } else if (moved.problem) {
      byId("moved").replaceChildren(make("p", { class: "problem-line" }, moved.problem));
    } else {
      const about = make("p", { class: "quiet" }, t(moved.words ? "moved.words" : "moved.picture", { label: moved.label }));
      byId("moved").replaceChildren(about, ...(moved.words ? colouredWords(moved.words) : [colouredPicture(moved)]));
    }
  }
}

const signed = (value) => number(value, { signDisplay: "exceptZero", minimumFractionDigits: 2 });

function colouredWords(words) {
  const limit = Math.max(...words.map(([, value]) => Math.abs(value)), 1e-9);
  const spans = words.map(([text, value]) => {
    const word = make("bdi", { title: signed(value), class: value >= 0 ? "raised" : "lowered" }, text.trim());
    word.style.setProperty("--share", `${Math.round((45 * Math.abs(value)) / limit)}%`);
    return text.startsWith(" ") ? [" ", word] : [word];
  });
  const list = (some) => some.slice(0, 3).map(([text, value]) => `${text.trim()} ${signed(value)}`).join(t("moved.and"));
  const order = [...words].sort(([, a], [, b]) => b - a);
  const most = list(order.filter(([, value]) => value > 0.005)) || "–";
  const least = list(order.reverse().filter(([, value]) => value < -0.005)) || "–";
  return [
    make("p", { class: "coloured", dir: "auto" }, ...spans.flat()),
    make("p", { class: "quiet" }, t("moved.summary", { most, least })),
  ];
}

const RAISED = [31, 95, 220];
const LOWERED = [232, 89, 12];

/** The picture as the model read it, with the map over it. */
function colouredPicture({ picture, map, label }) {
  const canvas = make("canvas", { width: map.columns, height: map.rows, "aria-hidden": "true" });
  const pixels = new ImageData(map.columns, map.rows);
  [...atob(map.values)].forEach((sign, place) => {
    const share = (sign.charCodeAt(0) - 128) / 127;
    pixels.data.set([...(share >= 0 ? RAISED : LOWERED), Math.round(210 * Math.abs(share))], 4 * place);
  });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  const image = make("img", { src: `data:image/png;base64,${picture}`, alt: t("moved.alt", { label }) });
  return make("div", { class: "over" }, image, canvas);
}

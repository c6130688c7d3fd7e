// The right-hand side of Translate: the text with its confidence, its tokens, and other ways to say it.
import { align, describe, legendItems, markedText, tokenItems, unsureSentence } from "./confidence.js";
import { byId, make, show } from "./dom.js";
import { percent, t } from "./language.js";

export class Result {
  constructor() {
    this.lines = []; // {text, details, alternatives, indent}; an empty one is a blank line
    this.text = "";
    this.withAlternatives = false;
    this.output = byId("output");
    this.tip = byId("token-tip");
    this.current = -1; // the token that the tip is about
    this.output.addEventListener("pointerover", (event) => this._point(this._tokens().indexOf(event.target), false));
    this.output.addEventListener("pointerleave", () => this._point(-1, false));
    this.output.addEventListener("click", (event) => this._point(this._tokens().indexOf(event.target), false));
    this.output.addEventListener("blur", () => this._point(-1, false));
    this.output.addEventListener("keydown", (event) => this._key(event));
  }

  clear() {
    this.lines = [];
    this.redraw();
  }

  show(found, indents, language, withAlternatives) {
    this.lines = found.map((each, place) => ({ ...(each ?? { text: "" }), indent: indents[place] }));
    this.output.lang = language || "";
    this.withAlternatives = withAlternatives;
    this.redraw();
  }

  /** `stale`: what stands there is the translation of another text than the one on the left. */
  setState({ busy, stale }) {
    byId("result-pane").classList.toggle("busy", busy);
    byId("result-pane").classList.toggle("stale", stale);
    this.output.setAttribute("aria-busy", String(busy));
  }

  redraw() {
    this.text = this.lines.map(({ indent, text }) => indent + text).join("\n");
    this._point(-1, false);
    const empty = this.text.trim() === "";
    if (empty) this.output.replaceChildren(make("span", { class: "placeholder" }, t("translate.output.empty")));
    else this._drawText();
    byId("output-copy").disabled = byId("translate-look").disabled = empty;
    byId("legend")
      .querySelector("ul")
      .replaceChildren(...legendItems());
    this._drawConfidence(empty);
    this._drawTokens();
    this._drawAlternatives(empty);
  }

  _drawText() {
    const nodes = this.lines.flatMap((line, place) => {
      const parts = align(line.text, line.details?.tokens ?? []);
      return [place ? "\n" : "", line.indent, ...markedText(parts)];
    });
    this.output.replaceChildren(...nodes);
    const unsure = unsureSentence(this.lines.flatMap((line) => align(line.text, line.details?.tokens ?? [])));
    if (unsure)
      this.output.append(make("span", { class: "unseen", lang: document.documentElement.lang }, ` ${unsure}`));
  }

  _drawConfidence(empty) {
    const known = this.lines.map(({ details }) => details).filter((details) => typeof details?.confidence === "number");
    const mean = known.reduce((sum, { confidence }) => sum + confidence, 0) / known.length;
    const cut = known.some(({ stopped }) => stopped === "length" || stopped === "loop");
    const lines = empty || !known.length ? [] : [t("translate.confidence", { value: percent(mean) })];
    if (cut) lines.push(t("translate.trouble"));
    byId("confidence").textContent = lines.join(" · ");
  }

  _drawTokens() {
    const tokens = this.lines.flatMap(({ details }) => details?.tokens ?? []);
    byId("token-list").replaceChildren(...tokenItems(tokens));
    const engineHasNone = this.text.trim() !== "" && !tokens.length;
    show(byId("token-none"), engineHasNone);
    show(byId("tokens-box"), this.text.trim() !== "");
    show(byId("legend"), tokens.length > 0);
  }

  _drawAlternatives(empty) {
    const box = byId("alternatives");
    show(byId("alternatives-box"), !empty);
    if (!this.withAlternatives || empty) return box.replaceChildren();
    const several = this.lines.filter(({ text }) => text).length > 1;
    const groups = this.lines.flatMap((line, place) => {
      if (!line.alternatives?.length) return [];
      const list = make(
        "ul",
        { class: "alternatives" },
        ...line.alternatives.map((text) => this._alternative(place, text)),
      );
      return several ? [make("h3", {}, t("translate.alternatives.line", { line: place + 1 })), list] : [list];
    });
    if (!groups.length) groups.push(make("p", { class: "quiet" }, t("translate.alternatives.none")));
    return box.replaceChildren(...groups);
  }

  _alternative(place, text) {
    const use = () => {
      const line = this.lines[place];
      const others = line.alternatives.filter((each) => each !== text);
      // Its tokens are not known: it stands there without marks.
      this.lines[place] = { ...line, text, details: null, alternatives: [line.text, ...others] };
      this.redraw();
      byId("alternatives").querySelector("button")?.focus();
    };
    const label = t("translate.use.label", { text });
    return make(
      "li",
      {},
      make("span", { dir: "auto", lang: this.output.lang }, text),
      make("button", { type: "button", class: "ghost", "aria-label": label, onclick: use }, t("translate.use")),
    );
  }

  // ---- the tip that follows the pointer, a tap or the arrow keys

  _tokens() {
    return [...this.output.querySelectorAll(".token")];
  }

  _key(event) {
    const moves = { ArrowRight: 1, ArrowLeft: -1 };
    const tokens = this._tokens();
    if (!(event.key in moves) || !tokens.length) return;
    event.preventDefault();
    const next = this.current < 0 ? 0 : this.current + moves[event.key];
    this._point(Math.min(Math.max(next, 0), tokens.length - 1), true);
  }

  _point(place, spoken) {
    const tokens = this._tokens();
    tokens[this.current]?.classList.remove("current");
    this.current = place;
    const token = tokens[place];
    show(this.tip, Boolean(token));
    if (!token) return;
    token.classList.add("current");
    this.tip.setAttribute("aria-live", spoken ? "polite" : "off");
    this.tip.textContent = describe(token.textContent, Number(token.dataset.probability));
    const pane = byId("result-pane").getBoundingClientRect();
    const at = token.getClientRects()[0];
    const left = Math.min(at.left - pane.left, pane.width - this.tip.offsetWidth - 8);
    this.tip.style.left = `${Math.max(8, left)}px`;
    this.tip.style.top = `${at.bottom - pane.top + 6}px`;
  }
}

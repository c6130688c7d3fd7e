// How sure the model was of each token, laid over the text that the tokens became.
import { make } from "./dom.js";
import { percent, t } from "./language.js";

// From the surest down. Each has a line style of its own, so that colour is not needed to tell them apart.
export const LEVELS = [
  { name: "sure", low: 0.8 },
  { name: "fair", low: 0.5 },
  { name: "unsure", low: 0.2 },
  { name: "doubtful", low: 0 },
];

export const levelOf = (probability) => LEVELS.find(({ low }) => probability >= low) ?? LEVELS.at(-1);

const core = (piece) => piece.replaceAll("▁", " ").trim();

/**
 * The text in parts, each with a probability or null. Pieces are for reading and do not join to the text exactly
 * (spaces, bytes): each is sought from where the last one ended, and what lies between belongs to the pieces that
 * were not found, with the least of their probabilities.
 */
export function align(text, tokens) {
  const parts = [];
  let place = 0;
  let unfound = [];
  const passUntil = (end) => {
    const between = text.slice(place, end);
    const blank = between.trim() === "";
    const least = unfound.length && !blank ? Math.min(...unfound) : null;
    if (between) parts.push({ text: between, probability: least });
    unfound = blank ? unfound : [];
  };
  for (const { text: piece, probability } of tokens) {
    const wanted = core(piece);
    const found = wanted === "" ? -1 : text.indexOf(wanted, place);
    const skipped = found < 0 ? "" : text.slice(place, found).trim();
    if (found < 0 || skipped.length > 8 * unfound.length) {
      unfound.push(probability);
      continue;
    }
    passUntil(found);
    parts.push({ text: wanted, probability: Math.min(probability, ...unfound) });
    unfound = [];
    place = found + wanted.length;
  }
  passUntil(text.length);
  return parts;
}

/** Text nodes and marked spans. */
export function markedText(parts) {
  return parts.map(({ text, probability }) => {
    if (probability === null) return document.createTextNode(text);
    const level = levelOf(probability).name;
    return make("span", { class: `token ${level}`, "data-probability": probability }, text);
  });
}

export function describe(token, probability) {
  const level = t(`legend.${levelOf(probability).name}`);
  return t("tokens.tip", { token, value: percent(probability), level });
}

export function tokenItems(tokens) {
  return tokens.map(({ text, probability }) => {
    const level = levelOf(probability).name;
    const bar = make("span", { class: `meter ${level}`, "aria-hidden": "true" }, make("span"));
    bar.firstChild.style.width = `${Math.max(2, 100 * probability)}%`;
    return make(
      "li",
      {},
      make("span", { class: `token ${level}`, dir: "auto" }, core(text) || "␣"),
      bar,
      make(
        "span",
        { class: "value" },
        percent(probability),
        make("span", { class: "unseen" }, ` ${t(`legend.${level}`)}`),
      ),
    );
  });
}

/** The tokens that a reader should check, as a sentence; empty where there are none. */
export function unsureSentence(parts) {
  const doubtful = parts.filter(({ probability }) => probability !== null && probability < 0.5);
  doubtful.sort((a, b) => a.probability - b.probability);
  const list = doubtful.slice(0, 5).map(({ text, probability }) => `${text} ${percent(probability)}`);
  return list.length ? t("tokens.unsure", { list: list.join(", ") }) : "";
}

export function legendItems() {
  return LEVELS.map(({ name, low }, place) => {
    const high = place === 0 ? null : LEVELS[place - 1].low;
    const range =
      high === null
        ? t("legend.above", { low: percent(low) })
        : low === 0
          ? t("legend.below", { high: percent(high) })
          : t("legend.between", { low: percent(low), high: percent(high) });
    return make("li", {}, make("span", { class: `token ${name}` }, t(`legend.${name}`)), " ", make("small", {}, range));
  });
}

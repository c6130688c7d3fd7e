// The card of a model: what it is for, what it learned from, how good it is. Opened from its name.
import { getJson } from "./api.js";
import { byId, make } from "./dom.js";
import { languageName, number, t } from "./language.js";

byId("card-close").addEventListener("click", () => byId("card").close());
byId("card").addEventListener("click", (event) => event.target === byId("card") && byId("card").close());

export async function openCard({ name, title }) {
  byId("card-title").textContent = title || name;
  byId("card-content").replaceChildren(make("p", { class: "quiet" }, t("card.loading")));
  byId("card").showModal();
  try {
    const card = await getJson(`models/${encodeURIComponent(name)}`);
    byId("card-content").replaceChildren(...contentOf(card));
  } catch (problem) {
    byId("card-content").replaceChildren(make("p", { class: "problem-line", role: "alert" }, problem.message));
  }
}

function contentOf(card) {
  const rows = [
    ["card.name", card.name],
    ["card.task", t(`task.${card.task}`)],
    ["card.good_for", card.good_for],
    ["card.limits", card.limits],
    ["card.languages", card.languages.map(languageName).join(" → ")],
    ["card.family", [card.family, card.family_about].filter(Boolean).join(": ")],
    ["card.size", sizeOf(card)],
    ["card.settings", settingsOf(card.architecture)],
    ["card.trained_on", card.trained_on || (card.sentences ? t("card.items", { count: number(card.sentences) }) : "")],
    ["card.licence", card.licence],
    ["card.source", card.source && linkTo(card.source)],
    ["card.validation", Object.entries(card.validation).map(scoreOf).join(", ")],
    ["card.headwise", card.headwise && `Headwise ${card.headwise}`],
  ];
  const known = rows.filter(([, value]) => value);
  const list = make("dl", { class: "card-facts" }, ...known.flatMap(([key, value]) => [make("dt", {}, t(key)), make("dd", { dir: "auto" }, value)]));
  return card.tests.length ? [list, make("h3", {}, t("card.tests")), scores(card.tests)] : [list];
}

function sizeOf({ parameters, precision, engine, context }) {
  const parts = [t("card.parameters", { count: number(parameters) }), precision, engine];
  if (context) parts.push(t("card.context", { count: number(context) }));
  return parts.join(", ");
}

const settingsOf = (architecture) =>
  Object.entries(architecture)
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(", ");

const scoreOf = ([name, value]) => `${name} ${number(value, { maximumSignificantDigits: 4, maximumFractionDigits: 6 })}`;

/** Only an address of the web becomes a link: a card is written by whoever made the model. */
function linkTo(source) {
  if (!/^https:\/\/[^\s]+$/.test(source)) return source;
  return make("a", { href: source, target: "_blank", rel: "noreferrer noopener" }, source);
}

function scores(tests) {
  const heads = ["card.test", "card.score", "card.engine", "card.signature"];
  const rows = tests.map(({ test, metric, value, signature, engine }) =>
    make(
      "tr",
      {},
      make("td", {}, test),
      make("td", {}, `${metric} ${number(value)}`),
      make("td", {}, engine),
      make("td", { class: "signature" }, signature),
    ),
  );
  const head = make("tr", {}, ...heads.map((key) => make("th", { scope: "col" }, t(key))));
  return make("div", { class: "scores", tabindex: 0, role: "group", "aria-label": t("card.tests") }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}

// Runs as they train: the list, and the curves, samples and figures of the one that is picked.
import { getJson } from "./api.js";
import { Chart } from "./chart.js";
import { Course, FALLING, SCORES } from "./course.js";
import { byId, emptyState, make, show } from "./dom.js";
import { duration, number, onLanguage, small, t } from "./language.js";
import { recall, remember } from "./settings.js";

const EVERY = 2000; // milliseconds between two questions while a run goes on
const QUIET = 10000; // and while nothing does
const MANY = 1000; // records: an answer with more may have left some out

const CHARTS = [
  {
    name: "loss",
    title: "chart.loss",
    unit: "chart.loss.unit",
    second: "chart.perplexity",
    exact: (value) => number(value, { maximumFractionDigits: 4 }),
    series: [
      ["training", "chart.training", "one"],
      ["validation", "chart.validation", "two marked"],
    ],
  },
  {
    name: "scores",
    title: "chart.scores",
    fromZero: true,
    // A task has one or two of them.
    series: [
      ["bleu", "chart.bleu", "one marked"],
      ["chrf", "chart.chrf", "three dashed marked"],
      ["accuracy", "chart.accuracy", "one marked"],
      ["macro_f1", "chart.macro_f1", "three dashed marked"],
      ["wer", "chart.wer", "one marked"],
      ["cer", "chart.cer", "three dashed marked"],
    ],
  },
  { name: "rate", title: "chart.rate", fromZero: true, format: small, series: [["rate", "chart.rate", "one"]] },
  { name: "norm", title: "chart.norm", log: true, format: small, series: [["norm", "chart.norm", "one"]] },
  {
    name: "speed",
    title: "chart.speed",
    unit: "chart.speed.unit",
    fromZero: true,
    format: (value) => number(value, { maximumFractionDigits: 0 }),
    series: [["speed", "chart.speed", "one"]],
  },
];

export const start = () => new Training();

class Training {
  constructor() {
    this.visible = false;
    this.timer = null;
    this.runs = null;
    this.courses = new Map(); // by the run's name
    this.rows = new Map();
    this.picked = recall("run", "");
    this.logSteps = recall("axis", "linear") === "log";
    this.charts = CHARTS.map((options) => new Chart(options));
    byId("charts").append(...this.charts.map(({ element }) => element));
    for (const radio of byId("axis").querySelectorAll("input")) {
      radio.checked = (radio.value === "log") === this.logSteps;
      radio.addEventListener("change", () => this._axis(radio.value));
    }
    document.addEventListener("visibilitychange", () => this.refresh());
    onLanguage(() => this._words());
  }

  shown(visible) {
    this.visible = visible;
    this.refresh();
  }

  /** Asks now, and then again and again as long as somebody looks. */
  async refresh() {
    clearTimeout(this.timer);
    const round = (this.round = Symbol("round"));
    if (!this.visible || document.hidden) return;
    try {
      this.runs = inOrder((await getJson("runs")).runs);
      if (this.round !== round) return;
      if (!this.runs.some(({ name }) => name === this.picked)) this.picked = this.runs[0]?.name ?? "";
      this._drawList();
      if (this.picked) await this._follow(this.picked, round);
      if (this.round !== round) return;
      byId("training-problem").textContent = "";
    } catch (problem) {
      if (this.round !== round) return;
      byId("training-problem").textContent = problem.message;
    }
    const going = this.runs?.some(({ state }) => state === "running");
    this.timer = setTimeout(() => this.refresh(), going ? EVERY : QUIET);
  }

  async _follow(name, round) {
    const course = this._course(name);
    let answer = null;
    let changed = this.drawn !== course;
    do {
      answer = await getJson(`runs/${encodeURIComponent(name)}?after=${course.next}`);
      if (this.round !== round) return;
      changed = course.take(answer, Date.now()) || changed;
    } while (answer.records.length >= MANY); // a long log comes in parts
    if (changed) this._drawRun(course);
    else this._drawFacts(course);
  }

  /** What is known of a run; nothing, where it went back: it was resumed from an earlier update, or begun anew. */
  _course(name) {
    const { step } = this.runs.find((run) => run.name === name);
    const known = this.courses.get(name);
    if (!known || step < known.step) this.courses.set(name, new Course(name));
    return this.courses.get(name);
  }

  _pick(name) {
    this.picked = name;
    remember("run", name);
    this._drawList();
    this.refresh();
  }

  _axis(value) {
    this.logSteps = value === "log";
    remember("axis", value);
    this._redraw();
  }

  _redraw() {
    const course = this.courses.get(this.picked);
    if (course && this.drawn === course) this._drawRun(course);
  }

  // ---- drawing

  _words() {
    const empty = emptyState(t("training.none.title"), t("training.none"), "headwise serve --runs runs");
    byId("training-empty").replaceChildren(empty);
    byId("run-waiting").replaceChildren(emptyState(t("training.waiting.title"), t("training.waiting")));
    if (this.runs) this._drawList();
    this._redraw();
  }

  _drawList() {
    show(byId("training-empty"), !this.runs.length);
    show(byId("training-work"), this.runs.length > 0);
    // Rows stay the same elements, so that neither a click nor the focus is lost when figures change.
    const rows = this.runs.map((run) => this.rows.get(run.name) ?? this._row(run.name));
    this.rows = new Map(this.runs.map(({ name }, place) => [name, rows[place]]));
    const list = byId("runs");
    if (rows.length !== list.children.length || rows.some((row, place) => row !== list.children[place]))
      list.replaceChildren(...rows);
    this.runs.forEach((run, place) => this._fillRow(rows[place].firstChild, run));
  }

  _row(name) {
    const button = make(
      "button",
      { type: "button", "data-run": name, onclick: () => this._pick(name) },
      make("span", { class: "run-title" }, name),
      make("span", { class: "chip" }),
      make("span", { class: "quiet" }),
      make("span", { class: "progress", "aria-hidden": "true" }, make("span")),
    );
    return make("li", {}, button);
  }

  _fillRow(button, run) {
    const [, chip, steps, bar] = button.children;
    chip.className = `chip ${run.state}`;
    chip.textContent = t(`training.state.${run.state}`);
    steps.textContent = stepsOf(run);
    bar.firstChild.style.width = `${100 * share(run)}%`;
    if (run.name === this.picked) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }

  _drawRun(course) {
    this.drawn = course;
    show(byId("run"), true);
    byId("run-name").textContent = course.name;
    byId("run-state").textContent = t(`training.state.${course.state}`);
    byId("run-state").className = `chip ${course.state}`;
    byId("run-verdict").textContent = course.verdict;
    show(byId("run-verdict"), course.verdict !== "");
    show(byId("run-waiting"), course.last === null && course.validation === null);
    CHARTS.forEach(({ series }, place) => {
      const curves = series.map(([curve, name, kind]) => ({ name, kind, points: course.series(curve) }));
      this.charts[place].update(curves, this.logSteps);
    });
    show(byId("axis"), course.last !== null);
    this._drawFacts(course);
    this._drawSamples(course.validation);
    this._drawWarnings(course.warnings);
    if (byId("recipe").textContent !== course.recipe) byId("recipe").textContent = course.recipe;
    show(byId("recipe-box"), course.recipe !== "");
  }

  _drawFacts(course) {
    const run = this.runs.find(({ name }) => name === course.name) ?? {};
    const step = number(Math.max(run.step ?? 0, course.step));
    const facts = [[t("training.updates"), run.steps ? `${step} / ${number(run.steps)}` : step]];
    const left = course.left(run.steps);
    if (left !== null) facts.push([t("training.left"), duration(left)]);
    facts.push(...scoreFacts(course), ...speedFacts(course));
    if (course.last) {
      facts.push([t("training.epoch"), number(course.last.epoch + 1)]);
      facts.push([
        t("training.tokens"),
        number(course.last.tokens, { notation: "compact", maximumSignificantDigits: 3 }),
      ]);
    }
    byId("facts").replaceChildren(
      ...facts.map(([name, value, note]) =>
        make(
          "div",
          { class: "fact" },
          make("span", { class: "quiet" }, name),
          make("strong", {}, value),
          note ? make("small", {}, note) : null,
        ),
      ),
    );
    const ago = Number.isFinite(run.updated) ? Math.max(0, Date.now() / 1000 - run.updated) : null;
    byId("run-updated").textContent = ago === null ? "" : t("training.updated", { ago: duration(ago) });
  }

  _drawSamples(validation) {
    const place = byId("run-samples");
    if (!validation?.samples?.length) return place.replaceChildren();
    const row = (name, text) => [make("dt", {}, t(name)), make("dd", { dir: "auto" }, text)];
    const cards = validation.samples.map(([source, reference, output]) =>
      make(
        "dl",
        { class: "card sample" },
        ...row("training.sample.source", source),
        ...row("training.sample.reference", reference),
        ...row("training.sample.output", output),
      ),
    );
    const title = make("h3", {}, t("training.samples", { step: number(validation.step) }));
    return place.replaceChildren(title, make("div", { class: "samples" }, ...cards));
  }

  _drawWarnings(warnings) {
    const line = ({ message, file }) => message ?? t("training.skipped", { file: file ?? "" });
    const rows = warnings
      .slice(-20)
      .map((record) => make("li", {}, t("training.warning", { step: number(record.step), message: line(record) })));
    byId("run-warnings").replaceChildren(
      ...(rows.length ? [make("h3", {}, t("training.warnings")), make("ul", { class: "card warnings" }, ...rows)] : []),
    );
  }
}

/** Those that go on first, by name so that they keep their places; then the others, the latest first. */
function inOrder(runs) {
  const going = runs.filter(({ state }) => state === "running").sort((a, b) => a.name.localeCompare(b.name));
  const others = runs.filter(({ state }) => state !== "running").sort((a, b) => (b.updated ?? 0) - (a.updated ?? 0));
  return [...going, ...others];
}

const share = ({ step, steps, state }) => (state === "finished" || state === "failed" ? 1 : steps ? Math.min(1, (step ?? 0) / steps) : 0);

function stepsOf({ step, steps }) {
  return steps
    ? t("training.steps", { step: number(step ?? 0), steps: number(steps) })
    : t("training.step", { step: number(step ?? 0) });
}

function scoreFacts(course) {
  const fact = (name, curve, better, digits) => {
    const last = course.series(curve).at(-1);
    const best = course.best(curve, better);
    const write = (value) => number(value, { maximumFractionDigits: digits, minimumFractionDigits: digits });
    if (!last) return [];
    return [[t(name), write(last[1]), t("training.best", { value: write(best[1]), step: number(best[0]) })]];
  };
  const score = SCORES.find((name) => course.series(name).length);
  const better = FALLING.includes(score) ? (a, b) => a < b : (a, b) => a > b;
  return [
    ...fact("training.loss", "validation", (a, b) => a < b, 3),
    ...(score ? fact(`chart.${score}`, score, better, 1) : []),
  ];
}

function speedFacts(course) {
  const { tokens, updates } = course.speed();
  const lines = [];
  if (tokens !== null) lines.push(t("training.speed.value", { value: number(tokens, { maximumFractionDigits: 0 }) }));
  if (updates !== null)
    lines.push(t("training.speed.updates", { value: number(60 * updates, { maximumSignificantDigits: 3 }) }));
  return lines.length ? [[t("training.speed"), lines[0], lines[1]]] : [];
}

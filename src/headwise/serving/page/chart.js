// Line charts as SVG, with axes, a legend, and a cross-hair for pointer and keyboard.
import { make, makeSvg } from "./dom.js";
import { number, t } from "./language.js";
import { extent, makeScale, thin } from "./scales.js";

const HEIGHT = 230;
const MARGIN = { top: 10, right: 14, bottom: 34, left: 52 };
const UNIT = 18; // the line above the plot that names the unit

export class Chart {
  /**
   * `title` and `unit` are keys of strings; `format` writes a value; `fromZero`, `log` (by powers of ten where the
   * values span more than one and a half of them) and `second` (a reading of the same axis on the right) are optional.
   */
  constructor(options) {
    this.options = { format: (value) => number(value), ...options };
    this.series = [];
    this.logSteps = false;
    this.current = null; // the update that the cross-hair is at
    this.heading = make("h3");
    this.legend = make("ul", { class: "chart-legend" });
    this.picture = makeSvg("svg", { tabindex: "0", role: "img", class: "plot" });
    this.tip = make("div", { class: "tip chart-tip", "aria-live": "off", hidden: true });
    this.element = make(
      "figure",
      { class: "card chart", "data-chart": options.name },
      make("figcaption", {}, this.heading, this.legend),
      make("div", { class: "plot-place" }, this.picture, this.tip),
    );
    this._listen();
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  /** Series are {name, kind, points: [[update, value]]}; `kind` is a class of the style sheet. */
  update(series, logSteps) {
    this.series = series.filter(({ points }) => points.length > 0);
    this.logSteps = logSteps;
    this.element.hidden = this.series.length === 0;
    this.draw();
  }

  draw() {
    const width = this.picture.parentElement.clientWidth;
    if (!width || !this.series.length) return;
    this._words();
    this._measure(width);
    this.picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.picture.setAttribute("height", HEIGHT);
    this.cross = makeSvg("g", { class: "cross" });
    this.picture.replaceChildren(...this._axes(), ...this.series.flatMap((each) => this._line(each)), this.cross);
    if (this.current !== null) this._point(this.current);
  }

  _measure(width) {
    const { second, fromZero, log } = this.options;
    const steps = this.series.flatMap(({ points }) => points.map(([step]) => step));
    const values = this.series.flatMap(({ points }) => points.map(([, value]) => value));
    const least = Math.min(...values);
    this.logValues = Boolean(log) && least > 0 && Math.max(...values) / least > 30;
    const [low, high] = extent(values, { fromZero, log: this.logValues });
    const right = width - (second ? MARGIN.left : MARGIN.right);
    const top = MARGIN.top + (this.options.unit ? UNIT : 0);
    const first = Math.max(1, Math.min(...steps));
    const last = Math.max(...steps);
    this.x = makeScale(this.logSteps ? first : 0, last > first ? last : first + 1, MARGIN.left, right, this.logSteps);
    this.y = makeScale(low, high, HEIGHT - MARGIN.bottom, top, this.logValues);
    this.right = right;
    this.top = top;
  }

  _axes() {
    const { format, unit, second } = this.options;
    const { x, y, right } = this;
    const base = HEIGHT - MARGIN.bottom;
    const parts = [];
    for (const value of y.ticks(5)) {
      const at = y.place(value);
      parts.push(makeSvg("line", { class: "grid", x1: MARGIN.left, x2: right, y1: at, y2: at }));
      parts.push(
        makeSvg("text", { class: "tick", x: MARGIN.left - 8, y: at + 4, "text-anchor": "end" }, format(value)),
      );
    }
    for (const value of x.ticks(Math.max(2, Math.floor((right - MARGIN.left) / 72)))) {
      const at = x.place(value);
      parts.push(makeSvg("line", { class: "mark", x1: at, x2: at, y1: base, y2: base + 4 }));
      parts.push(makeSvg("text", { class: "tick", x: at, y: base + 17, "text-anchor": "middle" }, number(value)));
    }
    parts.push(makeSvg("line", { class: "axis", x1: MARGIN.left, x2: right, y1: base, y2: base }));
    parts.push(
      makeSvg("text", { class: "tick unit", x: right, y: HEIGHT - 2, "text-anchor": "end" }, t("chart.updates")),
    );
    if (unit) parts.push(makeSvg("text", { class: "tick", x: MARGIN.left, y: 14 }, t(unit)));
    if (second) parts.push(...this._secondAxis(second));
    return parts;
  }

  /** The same heights, read as e to the power of them. */
  _secondAxis(name) {
    const { y, right } = this;
    const scale = makeScale(Math.exp(y.low), Math.exp(y.high), HEIGHT - MARGIN.bottom, this.top, true);
    const title = makeSvg("text", { class: "tick", x: right, y: 14, "text-anchor": "end" }, t(name));
    const write = (value) => number(value, { maximumSignificantDigits: 3 });
    const ticks = scale
      .ticks(6)
      .map((value) => makeSvg("text", { class: "tick", x: right + 8, y: scale.place(value) + 4 }, write(value)));
    return [title, ...ticks];
  }

  _line({ kind, points }) {
    const { x, y } = this;
    const most = 2 * Math.max(100, Math.round(this.right - MARGIN.left));
    const at = thin(points, most).map(([step, value]) => [x.place(Math.max(step, x.low)), y.place(value)]);
    const path = at.map(([a, b], place) => `${place ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");
    const line = makeSvg("path", { class: `series ${kind}`, d: path });
    const marked = points.length === 1 || (kind.includes("marked") && points.length <= 60);
    const marks = marked ? at.map(([cx, cy]) => makeSvg("circle", { class: `series ${kind}`, cx, cy, r: 3 })) : [];
    return [line, ...marks];
  }

  _words() {
    const { title } = this.options;
    this.heading.textContent = t(title);
    const entries = this.series.map(({ name, kind }) =>
      make(
        "li",
        {},
        makeSvg(
          "svg",
          { width: 22, height: 10, "aria-hidden": "true" },
          makeSvg("path", { class: `series ${kind}`, d: "M1 5H21" }),
        ),
        t(name),
      ),
    );
    this.legend.replaceChildren(...(this.series.length > 1 ? entries : []));
    const summary = this.series.map(({ name, points }) =>
      t("chart.summary", { name: t(name), value: this._value(points.at(-1)[1]), step: number(points.at(-1)[0]) }),
    );
    this.picture.setAttribute("aria-label", t("chart.help", { title: t(title), summary: summary.join(" ") }));
  }

  _value(value) {
    return (this.options.exact ?? this.options.format)(value);
  }

  // ---- the cross-hair

  _listen() {
    this.picture.addEventListener("pointermove", (event) => {
      const at = event.clientX - this.picture.getBoundingClientRect().left;
      this.tip.setAttribute("aria-live", "off");
      this._point(this._nearest((step) => Math.abs(this.x.place(Math.max(step, this.x.low)) - at)));
    });
    this.picture.addEventListener("pointerleave", () => this._point(null));
    this.picture.addEventListener("blur", () => this._point(null));
    this.picture.addEventListener("keydown", (event) => this._key(event));
  }

  _steps() {
    const all = new Set(this.series.flatMap(({ points }) => points.map(([step]) => step)));
    return [...all].sort((a, b) => a - b);
  }

  _nearest(distance) {
    return this._steps().reduce((best, step) => (best === null || distance(step) < distance(best) ? step : best), null);
  }

  _key(event) {
    const steps = this._steps();
    const place = this.current === null ? steps.length : steps.indexOf(this.current);
    const moves = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: steps.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.tip.setAttribute("aria-live", "polite");
    this._point(steps[Math.min(Math.max(moves[event.key], 0), steps.length - 1)]);
  }

  _point(step) {
    this.current = step;
    this.tip.hidden = step === null;
    this.cross?.replaceChildren();
    if (step === null) return;
    const at = this.x.place(Math.max(step, this.x.low));
    this.cross.append(makeSvg("line", { x1: at, x2: at, y1: this.top, y2: HEIGHT - MARGIN.bottom }));
    const rows = this.series.flatMap(({ name, kind, points }) => {
      const found = points.find(([each]) => each === step);
      if (!found) return [];
      this.cross.append(makeSvg("circle", { class: `series ${kind}`, cx: at, cy: this.y.place(found[1]), r: 4 }));
      return [make("div", {}, `${t(name)} `, make("strong", {}, this._value(found[1])))];
    });
    this.tip.replaceChildren(make("div", { class: "quiet" }, t("chart.at", { step: number(step) })), ...rows);
    const room = this.picture.parentElement.clientWidth;
    const left = at + 12 + this.tip.offsetWidth > room ? at - 12 - this.tip.offsetWidth : at + 12;
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${this.top}px`;
  }
}

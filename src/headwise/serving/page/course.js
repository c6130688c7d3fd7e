// A run's records, put together as they arrive: points of curves, the last samples, warnings, speed and time left.

/** By their names in the log. Shares of what is right become percent, as all other scores are. */
export const SCORES = ["bleu", "chrf", "accuracy", "macro_f1", "wer", "cer"];
const SHARES = ["accuracy", "macro_f1"];
export const FALLING = ["wer", "cer"]; // the lower, the better

const RECENT = 6; // records that the speed is the mean of

export class Course {
  constructor(name) {
    this.name = name;
    this.next = 0;
    this.state = "";
    this.recipe = "";
    this.verdict = "";
    this.points = {}; // curve → Map of update → value
    this.last = null; // the last training record
    this.validation = null;
    this.warnings = [];
    this.times = new Map(); // update → {seconds, tokens_per_second}
    this.seen = []; // [milliseconds, update]: when this page saw an update, where the server tells no times
  }

  /** An answer of /runs/NAME; true where it brought something new. */
  take(answer, now) {
    this.next = answer.next;
    this.recipe = answer.recipe ?? this.recipe;
    this.verdict = answer.verdict ?? "";
    const changed = answer.records.length > 0 || answer.state !== this.state;
    this.state = answer.state;
    for (const record of answer.records) this._record(record);
    if (this.last && this.seen.at(-1)?.[1] !== this.last.step)
      this.seen = [...this.seen, [now, this.last.step]].slice(-RECENT);
    return changed;
  }

  get step() {
    return Math.max(this.last?.step ?? 0, this.validation?.step ?? 0);
  }

  series(curve) {
    // An update may come twice where a run was resumed: the later record counts. What is no number leaves a gap.
    return [...(this.points[curve] ?? [])].filter(([, value]) => Number.isFinite(value)).sort((a, b) => a[0] - b[0]);
  }

  best(curve, better) {
    return this.series(curve).reduce(
      (best, point) => (best === null || better(point[1], best[1]) ? point : best),
      null,
    );
  }

  /** Target tokens per second and updates per second, each null if unknown. */
  speed() {
    const times = [...this.times].sort((a, b) => a[0] - b[0]).slice(-RECENT);
    const tokens = times.map(([, { tokens_per_second }]) => tokens_per_second).filter(Number.isFinite);
    const ends = times.length > 1 ? times.map(([step, { seconds }]) => [1000 * seconds, step]) : this.seen;
    const [first, last] = [ends[0], ends.at(-1)];
    const updates = ends.length > 1 && last[0] > first[0] ? (1000 * (last[1] - first[1])) / (last[0] - first[0]) : null;
    return { tokens: tokens.length ? tokens.reduce((a, b) => a + b) / tokens.length : null, updates };
  }

  /** Seconds until the last update; null where nobody can know. */
  left(steps) {
    const { updates } = this.speed();
    return this.state === "running" && updates > 0 && steps ? Math.max(0, steps - this.step) / updates : null;
  }

  _record(record) {
    const { event, step } = record;
    if (event === "train") {
      this.last = record;
      this._add(
        { training: record.log_loss, rate: record.rate, norm: record.norm, speed: record.tokens_per_second },
        step,
      );
      if (Number.isFinite(record.seconds)) this.times.set(step, record);
    } else if (event === "validation" || event === "average") {
      this.validation = record;
      this._add({ validation: record.log_loss, ...scoresOf(record) }, step);
    } else if (event === "warning" || event === "skipped") {
      this.warnings.push(record);
    }
  }

  _add(values, step) {
    for (const [curve, value] of Object.entries(values)) {
      if (value !== undefined) (this.points[curve] ??= new Map()).set(step, value ?? NaN);
    }
  }
}

function scoresOf(record) {
  const known = SCORES.filter((name) => record[name] !== undefined);
  const value = (name) => (SHARES.includes(name) && record[name] !== null ? 100 * record[name] : record[name]);
  return Object.fromEntries(known.map((name) => [name, value(name)]));
}

// From values to places on a picture, and the round numbers to write beside an axis.

/** A scale maps [low, high] to [from, to]; `log` by powers of ten, for values above 0. */
export function makeScale(low, high, from, to, log = false) {
  const bend = log ? Math.log10 : (value) => value;
  const [a, b] = [bend(low), bend(high)];
  const place = (value) => from + ((bend(value) - a) / (b - a || 1)) * (to - from);
  const ticks = (count) => (log ? logTicks(low, high, count) : linearTicks(low, high, count));
  return { place, ticks, low, high };
}

export function linearTicks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((each) => each >= rough * 0.999);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1)
    ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

export function logTicks(low, high, count) {
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
      for (const factor of factors) {
        const value = Number((factor * 10 ** power).toPrecision(12));
        if (value >= low * 0.9999 && value <= high * 1.0001) ticks.push(value);
      }
    }
    if (ticks.length <= count || factors.length === 1) return ticks.length > 1 ? ticks : linearTicks(low, high, count);
  }
  return [];
}

/** The least and the greatest of all values, with a little air; from 0 where that is asked for. */
export function extent(values, { fromZero = false, log = false } = {}) {
  let low = Math.min(...values);
  let high = Math.max(...values);
  if (log) return low === high ? [low / 2, high * 2] : [low, high];
  const floor = low >= 0 ? 0 : -Infinity; // what is never below 0 is not drawn as if it could be
  if (fromZero) low = Math.min(0, low);
  const air = (high - low || Math.abs(high) || 1) * 0.06;
  return [Math.max(floor, low - air), high + air];
}

/** At most some two points a pixel: of each stretch the lowest and the highest, so that no spike is lost. */
export function thin(points, most) {
  if (points.length <= most) return points;
  const size = Math.ceil((2 * points.length) / most);
  const kept = [];
  for (let start = 0; start < points.length; start += size) {
    const stretch = points.slice(start, start + size);
    const sorted = [...stretch].sort((a, b) => a[1] - b[1]);
    const ends = sorted.length > 1 ? [sorted[0], sorted.at(-1)] : sorted;
    kept.push(...ends.sort((a, b) => a[0] - b[0]));
  }
  return kept;
}

// The interface's language: which one, and the words of it.
import { STRINGS } from "./strings.js";
import { recall, remember } from "./settings.js";

const wanted = recall("language", navigator.language?.toLowerCase().startsWith("zh") ? "zh" : "en");
let current = wanted in STRINGS ? wanted : "en";
const listeners = [];

export const language = () => current;
const locale = () => (current === "zh" ? "zh-CN" : "en");

/** The string of this key, with {names} filled in. */
export function t(key, values = {}) {
  const text = STRINGS[current][key];
  if (text === undefined) throw new Error(`no string ${key}`);
  return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

/** Calls now and after every change of language. */
export function onLanguage(listener) {
  listeners.push(listener);
  listener();
}

export function setLanguage(next) {
  current = next;
  remember("language", next);
  document.documentElement.lang = locale();
  translateMarkup(document);
  for (const listener of listeners) listener();
}

export function startLanguage() {
  document.documentElement.lang = locale();
  translateMarkup(document);
}

const ATTRIBUTES = { label: "aria-label", placeholder: "placeholder", hint: "title" };

function translateMarkup(root) {
  for (const element of root.querySelectorAll("[data-text]")) element.textContent = t(element.dataset.text);
  for (const [name, attribute] of Object.entries(ATTRIBUTES)) {
    for (const element of root.querySelectorAll(`[data-${name}]`)) {
      element.setAttribute(attribute, t(element.dataset[name]));
    }
  }
}

export function number(value, options = {}) {
  return new Intl.NumberFormat(locale(), { maximumFractionDigits: 2, ...options }).format(value);
}

export function percent(value) {
  return new Intl.NumberFormat(locale(), { style: "percent", maximumFractionDigits: 0 }).format(value);
}

/** Learning rates and the like: plain where that is short, else with a power of ten. */
export function small(value) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 1e-3) return number(value, { maximumSignificantDigits: 3, maximumFractionDigits: 6 });
  const [digits, power] = value.toExponential(2).split("e");
  return `${Number(digits)}×10${superscript(Number(power))}`;
}

const superscript = (power) => [...String(power)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(c)])).join("");

export function languageName(code) {
  try {
    return new Intl.DisplayNames([locale()], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}

export function duration(seconds) {
  const minutes = Math.round(seconds / 60);
  if (seconds < 90) return t("time.seconds", { seconds: Math.max(1, Math.round(seconds)) });
  if (minutes < 90) return t("time.minutes", { minutes });
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return t("time.hours", { hours, minutes: minutes % 60 });
  return t("time.days", { days: Math.floor(hours / 24), hours: hours % 24 });
}

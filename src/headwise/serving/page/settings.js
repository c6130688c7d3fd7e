// What the page remembers: settings from visit to visit, texts and the server's key as long as the browser tab lives.
// Storage may be full or switched off: then it forgets.
const PREFIX = "headwise.";

function read(storage, name, fallback) {
  try {
    const stored = JSON.parse(window[storage].getItem(PREFIX + name));
    // Another version may have stored something else by this name.
    return stored === null || typeof stored !== typeof fallback ? fallback : stored;
  } catch {
    return fallback;
  }
}

function write(storage, name, value) {
  try {
    window[storage].setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // Nothing is lost but the memory of it.
  }
}

export const recall = (name, fallback) => read("localStorage", name, fallback);
export const remember = (name, value) => write("localStorage", name, value);

const LONGEST_DRAFT = 20000; // characters

export const recallDraft = (name) => read("sessionStorage", name, "");
export const rememberDraft = (name, text) => write("sessionStorage", name, text.slice(0, LONGEST_DRAFT));

let key = read("sessionStorage", "key", "");

export const serverKey = () => key;

export function keepServerKey(value) {
  key = value;
  write("sessionStorage", "key", value);
}

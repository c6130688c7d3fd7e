// Tabs as ARIA describes them: arrows, Home and End move; the address remembers which one is open.
import { byId } from "./dom.js";
import { recall, remember } from "./settings.js";

const NAMES = ["translate", "look", "generate", "classify", "fill", "transcribe", "search", "training"];
const ALWAYS = ["look", "training"];
const listeners = {};
let open = null;
let wanted = null; // a view that was asked for before it was offered

const isOffered = (name) => NAMES.includes(name) && !byId(`tab-${name}`).hidden;

/** Shows or hides the tab of a view that only some servers have. */
export function offer(name, visible) {
  byId(`tab-${name}`).hidden = !visible;
  if (visible && wanted === name) select(name);
}

/** All views have been offered: one of them is open. */
export function offered() {
  if (open === null || !isOffered(open)) select(firstTask());
  reveal(); // tabs before it may have come after it
}

/** A phone is narrower than all tabs. */
const reveal = () => byId(`tab-${open}`).scrollIntoView({ block: "nearest", inline: "nearest" });

/** The first view of a task, or else of training runs. */
export const firstTask = () => NAMES.find((name) => isOffered(name) && !ALWAYS.includes(name)) ?? "training";

export const openTab = () => open;

/** `listener(visible)` whenever the view comes or goes. */
export function onTab(name, listener) {
  listeners[name] = listener;
}

export function select(name, focus = false) {
  if (!isOffered(name)) return;
  const before = open;
  wanted = null;
  open = name;
  for (const each of NAMES) {
    const tab = byId(`tab-${each}`);
    tab.setAttribute("aria-selected", String(each === name));
    tab.tabIndex = each === name ? 0 : -1;
    byId(each).hidden = each !== name;
  }
  reveal();
  if (focus) byId(`tab-${name}`).focus();
  if (before === name) return;
  remember("tab", name);
  history.replaceState(null, "", `#/${name}`); // the slash: no element has such an id, so nothing scrolls
  if (before !== null) listeners[before]?.(false);
  listeners[name]?.(true);
}

export function startTabs() {
  for (const name of NAMES) {
    const tab = byId(`tab-${name}`);
    tab.addEventListener("click", () => select(name));
    tab.addEventListener("keydown", (event) => {
      const names = NAMES.filter(isOffered);
      const place = names.indexOf(name);
      const moves = { ArrowRight: place + 1, ArrowLeft: place - 1 + names.length, Home: 0, End: names.length - 1 };
      if (!(event.key in moves)) return;
      event.preventDefault();
      select(names[moves[event.key] % names.length], true);
    });
  }
  window.addEventListener("hashchange", () => select(location.hash.slice(2)));
  const asked = location.hash.slice(2);
  wanted = NAMES.includes(asked) ? asked : recall("tab", "translate");
  select(wanted); // or as soon as it is offered
}

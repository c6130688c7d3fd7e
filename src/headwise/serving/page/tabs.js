// Tabs as ARIA describes them: arrows, Home and End move; the address remembers which one is open.
import { byId } from "./dom.js";
import { recall, remember } from "./settings.js";

const NAMES = ["translate", "look", "generate", "training"];
const listeners = {};
let open = null;

export const openTab = () => open;

/** `listener(visible)` whenever the view comes or goes. */
export function onTab(name, listener) {
  listeners[name] = listener;
}

export function select(name, focus = false) {
  if (!NAMES.includes(name)) return;
  const before = open;
  open = name;
  for (const each of NAMES) {
    const tab = byId(`tab-${each}`);
    tab.setAttribute("aria-selected", String(each === name));
    tab.tabIndex = each === name ? 0 : -1;
    byId(each).hidden = each !== name;
  }
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
      const place = NAMES.indexOf(name);
      const moves = { ArrowRight: place + 1, ArrowLeft: place - 1 + NAMES.length, Home: 0, End: NAMES.length - 1 };
      if (!(event.key in moves)) return;
      event.preventDefault();
      select(NAMES[moves[event.key] % NAMES.length], true);
    });
  }
  window.addEventListener("hashchange", () => select(location.hash.slice(2)));
  const asked = location.hash.slice(2);
  const last = NAMES.includes(asked) ? asked : recall("tab", "translate");
  select(NAMES.includes(last) ? last : "translate");
}

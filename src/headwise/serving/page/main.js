// Starts the page: language, theme, the server's models, and the views that these models have.
import { getJson } from "./api.js";
import { byId, show } from "./dom.js";
import { language, onLanguage, setLanguage, startLanguage } from "./language.js";
import { keepServerKey, recall, remember } from "./settings.js";
import { firstTask, offer, offered, onTab, openTab, select, startTabs } from "./tabs.js";

function startTheme() {
  const picker = byId("theme");
  picker.value = recall("theme", "auto");
  if (!picker.value) picker.value = "auto";
  const apply = () => {
    if (picker.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = picker.value;
  };
  picker.addEventListener("change", () => {
    remember("theme", picker.value);
    apply();
    document.dispatchEvent(new CustomEvent("theme"));
  });
  apply();
}

function startLanguagePicker() {
  const picker = byId("language");
  startLanguage();
  picker.value = language();
  picker.addEventListener("change", () => setLanguage(picker.value));
}

function startKeyBar(again) {
  const use = () => {
    const value = byId("key").value.trim();
    if (!value) return;
    keepServerKey(value);
    byId("key").value = "";
    show(byId("key-bar"), false);
    again();
  };
  byId("key-bar").addEventListener("submit", (event) => {
    event.preventDefault();
    use();
  });
  document.addEventListener("key-refused", () => {
    if (!byId("key-bar").hidden) return;
    show(byId("key-bar"), true);
    byId("key").focus();
  });
}

// By view, the task of the models that it is for. The file of a view is loaded when there is such a model.
const TASKS = {
  translate: "translate",
  generate: "generate",
  classify: "classify",
  fill: "fill",
  transcribe: "transcribe",
  search: "embed",
};
const views = {};
let lookedFrom = null; // the view whose button has just asked for a look

const page = {
  onEmpty: () => select(firstTask(), true),
  /** What there is to look at; `wanted` is what the reader has just asked for. */
  sources: () => {
    const from = lookedFrom;
    lookedFrom = null;
    const items = (name) => views[name].lookable?.() ?? [];
    return Object.keys(views).flatMap((name) => items(name).map((item) => ({ ...item, wanted: name === from })));
  },
};

async function view(name) {
  const { start } = await import(`./${name}.js`);
  const onLook = () => {
    lookedFrom = name;
    select("look", true);
  };
  views[name] ??= start({ ...page, onLook });
  return views[name];
}

async function offerView(name, models, limit) {
  const own = models.filter(({ kind }) => kind === TASKS[name]);
  if (own.length) await (await view(name)).setModels(own, limit);
  offer(name, own.length > 0);
}

/** What the server has, told to every view; again after a key was given or the server came back. */
async function load() {
  show(byId("server-problem"), false);
  try {
    const [{ models }, frontend] = await Promise.all([
      getJson("models"),
      getJson("frontend/settings").catch(() => ({})),
    ]);
    const limit = Number.isInteger(frontend.charLimit) && frontend.charLimit > 0 ? frontend.charLimit : null;
    await Promise.all(Object.keys(TASKS).map((name) => offerView(name, models, limit)));
    offered();
    if (openTab() === "look") views.look?.shown(); // it names the first view, which was not known before
    document.documentElement.dataset.ready = "";
  } catch (problem) {
    if (problem.status === 401 || problem.status === 403) return;
    byId("server-problem").querySelector("span").textContent = problem.message;
    show(byId("server-problem"), true);
  }
}

startLanguagePicker();
startTheme();
for (const name of Object.keys(TASKS)) onTab(name, (visible) => views[name]?.shown?.(visible));
for (const name of ["look", "training"]) onTab(name, async (visible) => (await view(name)).shown(visible));
const again = () => load().then(() => views.training?.refresh());
startKeyBar(again);
byId("server-retry").addEventListener("click", again);
onLanguage(() => (document.title = "Headwise"));
startTabs();
again();

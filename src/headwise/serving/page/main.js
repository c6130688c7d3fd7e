// Starts the page: language, theme, the server's models, and the views that these models have.
import { getJson } from "./api.js";
import { byId, show } from "./dom.js";
import { language, onLanguage, setLanguage, startLanguage } from "./language.js";
import { keepServerKey, recall, remember } from "./settings.js";
import { offer, onTab, select, startTabs } from "./tabs.js";
import { startGenerate } from "./generate.js";
import { startLook } from "./look.js";
import { startTraining } from "./training.js";
import { startTranslate } from "./translate.js";

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

const LATER = ["classify", "fill"]; // views that are loaded when the server has a model for them
const loaded = {};

async function offerView(name, models) {
  const has = models.some(({ kind, reads }) => kind === name && reads === "text");
  if (has) {
    loaded[name] ??= (await import(`./${name}.js`)).start();
    loaded[name].setModels(models);
  }
  offer(name, has);
}

/** What the server has, told to every view; again after a key was given or the server came back. */
async function load(views) {
  show(byId("server-problem"), false);
  try {
    const [{ models }, frontend] = await Promise.all([
      getJson("models"),
      getJson("frontend/settings").catch(() => ({})),
    ]);
    const limit = Number.isInteger(frontend.charLimit) && frontend.charLimit > 0 ? frontend.charLimit : null;
    for (const view of views) view.setModels(models, limit);
    await Promise.all(LATER.map((name) => offerView(name, models)));
    document.documentElement.dataset.ready = "";
  } catch (problem) {
    if (problem.status === 401 || problem.status === 403) return;
    byId("server-problem").querySelector("span").textContent = problem.message;
    show(byId("server-problem"), true);
  }
}

startLanguagePicker();
startTheme();
const translate = startTranslate({ onLook: () => select("look", true) });
const generate = startGenerate();
const look = startLook({
  sources: () => [...translate.lookable(), ...generate.lookable()],
  onEmpty: () => select("translate", true),
});
const training = startTraining();
onTab("translate", (visible) => visible && translate.shown());
onTab("look", (visible) => visible && look.shown());
onTab("training", (visible) => training.shown(visible));
const again = () => load([translate, generate]).then(() => training.refresh());
startKeyBar(again);
byId("server-retry").addEventListener("click", again);
onLanguage(() => (document.title = "Headwise"));
startTabs();
again();

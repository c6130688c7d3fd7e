// The attention picture of what was done in another view: the page of `headwise look`, in a frame that may run its
// own script and nothing else. It inherits this page's policy, which names that one script by its hash.
import { formOf, isAbort, postForText } from "./api.js";
import { byId, emptyState, fillSelect, make, show } from "./dom.js";
import { onLanguage, t } from "./language.js";
import { firstTask } from "./tabs.js";

const SHOWN = 70; // characters of a sentence in the picker

export const start = ({ sources, onEmpty }) => new LookView(sources, onEmpty);

class LookView {
  constructor(sources, onEmpty) {
    this.sources = sources;
    this.onEmpty = onEmpty;
    this.items = [];
    this.html = null;
    this.drawn = ""; // what the picture is of
    this.running = null;
    byId("look-what").addEventListener("change", () => this._draw());
    byId("look-save").addEventListener("click", () => this._save());
    byId("look-full").addEventListener("click", () => byId("look-place").firstElementChild?.requestFullscreen?.());
    document.addEventListener("theme", () => this._frame());
    onLanguage(() => {
      if (byId("look").hidden) return;
      this.shown();
      this._frame();
    });
  }

  shown(visible = true) {
    if (!visible) return;
    this.items = this.sources();
    show(byId("look-empty"), !this.items.length);
    show(byId("look-work"), this.items.length > 0);
    if (!this.items.length) return this._empty();
    const options = this.items.map(({ text, generated, file }, place) => {
      const line = shorten(text);
      const kind = generated ? "look.generated" : file ? "look.file" : null;
      return [String(place), kind ? t(kind, { text: line }) : line];
    });
    const wanted = this.items.findIndex((item) => item.wanted);
    fillSelect(byId("look-what"), options, wanted < 0 ? undefined : String(wanted));
    this._draw();
  }

  _empty() {
    const empty = emptyState(t("look.none.title"), t("look.none"));
    const view = t(`tab.${firstTask()}`);
    empty.append(make("button", { type: "button", class: "primary", onclick: this.onEmpty }, t("look.go", { view })));
    byId("look-empty").replaceChildren(empty);
  }

  async _draw() {
    const item = this.items[Number(byId("look-what").value)];
    const { text, target, model } = item;
    const asked = JSON.stringify([text, target, model, item.number]); // files have a number of their own
    if (asked === this.drawn) return;
    this.running?.abort();
    const controller = new AbortController();
    this.running = controller;
    this.drawn = asked;
    this._state(t("look.running"), "", true);
    try {
      const body = { text, ...(target === undefined ? {} : { target }), ...(model ? { model } : {}) };
      const sent = item.file ? formOf({ file: await item.file(), target, model }) : body;
      this.html = await postForText("look", sent, controller.signal);
      this._frame();
      this._state(t("look.ready"), "", false);
    } catch (problem) {
      if (isAbort(problem)) return;
      this.drawn = "";
      this.html = null;
      byId("look-place").replaceChildren();
      this._state("", problem.message, false);
    }
  }

  _frame() {
    if (this.html === null) return;
    const theme = document.documentElement.dataset.theme;
    // The picture is the file that `headwise look` writes; all that is added is the theme and language chosen here.
    const chosen = `<html lang="${document.documentElement.lang}"${theme ? ` data-theme="${theme}"` : ""}`;
    const html = this.html.replace('<html lang="en"', chosen);
    const frame = make("iframe", {
      sandbox: "allow-scripts",
      allow: "fullscreen",
      title: t("look.frame"),
      referrerpolicy: "no-referrer",
    });
    frame.srcdoc = html;
    byId("look-place").replaceChildren(frame);
  }

  _state(status, problem, busy) {
    byId("look-status").textContent = status;
    byId("look-status").classList.toggle("unseen", !busy); // a picture that is there is seen to be there
    byId("look-problem").textContent = problem;
    byId("look-card").classList.toggle("busy", busy);
    show(byId("look-card"), busy || this.html !== null);
    byId("look-save").disabled = byId("look-full").disabled = this.html === null;
  }

  _save() {
    const url = URL.createObjectURL(new Blob([this.html], { type: "text/html" }));
    make("a", { href: url, download: "attention.html" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }
}

function shorten(text) {
  const line = text.replace(/\s+/g, " ").trim();
  const characters = [...line];
  return characters.length <= SHOWN ? line : `${characters.slice(0, SHOWN - 1).join("")}…`;
}

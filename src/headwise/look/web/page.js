// The state of the page and its controls: view, layer, head, row (or step).

const element = (id) => document.getElementById(id);
const STEP_VIEW = "steps";
const state = { view: look.panels[0].name, layer: look.layer, head: look.head, row: 0, preview: null, step: 0 };
const heatmap = new Heatmap(showCell);

function panelInView() {
  return panelByName.get(state.view === STEP_VIEW ? look.steps.cross || look.steps.self : state.view);
}

// Weights are unpacked in the background: results that arrive after the view has changed are not drawn.
function moment() {
  const key = () => [state.view, state.layer, state.head, state.row, state.preview, state.step].join();
  const then = key();
  return { passed: () => key() !== then };
}

function make(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// ---- controls

function buildViews() {
  const views = look.panels.map((panel) => [panel.name, panel.title]);
  if (look.steps) views.push([STEP_VIEW, t("Step by step")]);
  for (const [name, title] of views) {
    const label = make("label");
    const input = make("input");
    Object.assign(input, { type: "radio", name: "view", value: name, id: `view-${name}`, checked: name === state.view });
    input.addEventListener("change", () => change({ view: name, row: 0, preview: null }));
    label.append(input, make("span", "", t(title)));
    element("views").append(label);
  }
  element("views").hidden = views.length < 2;
}

function fillSelect(select, names, chosen) {
  if (select.options.length !== names.length || [...select.options].some((option, i) => option.text !== names[i])) {
    select.replaceChildren(...names.map((name) => new Option(name, name)));
  }
  select.selectedIndex = chosen;
}

function showControls(panel) {
  state.layer = Math.min(state.layer, panel.layers - 1);
  state.head = Math.min(state.head, panel.heads.length - 1);
  fillSelect(element("layer"), Array.from({ length: panel.layers }, (_, i) => `${i + 1}`), state.layer);
  fillSelect(element("head"), panel.heads.map((name) => t(name)), state.head);
  element("pick").hidden = panel.layers === 1 && panel.heads.length === 1;
}

// ---- tokens

function tokenElement(tag, label, index) {
  const token = make(tag, "token");
  token.dataset.index = index;
  token.append(make("bdi", "piece", label), make("span", "weight", ""));
  return token;
}

function buildStrips(panel) {
  const rows = panel.rows.map((label, index) => {
    const token = tokenElement("button", label, index);
    Object.assign(token, { type: "button", tabIndex: -1 });
    token.setAttribute("role", "option");
    token.addEventListener("pointerenter", () => preview(index));
    token.addEventListener("focus", () => choose(index));
    token.addEventListener("click", () => choose(index));
    return token;
  });
  element("rows").replaceChildren(...rows);
  element("columns").replaceChildren(...panel.columns.map((label, index) => tokenElement("span", label, index)));
}

function markRow(row) {
  for (const token of element("rows").children) {
    const current = Number(token.dataset.index) === row;
    token.classList.toggle("current", current);
    token.setAttribute("aria-selected", String(current));
    token.tabIndex = Number(token.dataset.index) === state.row ? 0 : -1;
  }
}

function shadeStrip(strip, values, scale, visible = values.length) {
  const limit = scale === "mask" ? 1 : largest(values);
  for (const token of strip.children) {
    const index = Number(token.dataset.index);
    const colour = shade(values[index], limit);
    token.style.backgroundColor = css(colour);
    token.style.color = contrast(colour);
    token.classList.toggle("later", index >= visible);
    token.lastChild.textContent = index < visible ? written(values[index], scale) : "";
  }
}

// A recurrent decoder has no self-attention: what it has read is shown without weights.
function hideLater(strip, visible) {
  for (const token of strip.children) token.classList.toggle("later", Number(token.dataset.index) >= visible);
}

// A long text scrolls to where most of the attention went.
function revealLargest(strip, values) {
  if (strip.scrollHeight <= strip.clientHeight) return;
  const [most] = mostOf(values, values, 1);
  const token = strip.children[most ? most[2] - 1 : 0];
  strip.scrollTop = token.offsetTop - strip.offsetTop - strip.clientHeight / 2;
}

function showBars(list, entries, scale) {
  const limit = Math.max(...entries.map(([, value]) => Math.abs(value)), 1e-9);
  list.replaceChildren(
    ...entries.map(([label, value, place]) => {
      const item = make("li");
      const piece = make("bdi", "piece", label);
      if (place) piece.append(make("small", "", place));
      const bar = make("span", value < 0 ? "bar below" : "bar");
      bar.style.width = `${(100 * Math.abs(value)) / limit}%`;
      const track = make("span", "track");
      track.append(bar);
      item.append(piece, track, make("span", "number", written(value, scale)));
      return item;
    }),
  );
}

function mostOf(labels, values, count = 8) {
  const order = Array.from(values.keys()).sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]) || a - b);
  return order.slice(0, count).filter((i) => values[i]).map((i) => [labels[i], values[i], i + 1]);
}

async function showRow() {
  const panel = panelInView();
  if (state.view === STEP_VIEW || !panel.rows.length || !panel.columns.length) return;
  const row = state.preview === null ? state.row : state.preview;
  const now = moment();
  const values = (await layerOf(panel.name, state.layer)).row(state.head, row);
  if (now.passed()) return;
  markRow(row);
  shadeStrip(element("columns"), values, panel.scale);
  showBars(element("top"), mostOf(panel.columns, values), panel.scale);
  revealLargest(element("columns"), values);
  element("columns").dataset.row = row;
}

function preview(index) {
  state.preview = index;
  showRow();
}

function choose(index) {
  state.row = index;
  state.preview = null;
  showRow();
}

// ---- heads and matrix

async function showHeads(panel) {
  const { view, layer: number, head } = state;
  const layer = await layerOf(panel.name, number);
  if (view !== state.view || number !== state.layer || head !== state.head) return;
  const grid = element("head-grid");
  const width = window.innerWidth < 600 ? 92 : 132;
  const ratio = Math.max(0.5, Math.min(1.6, panel.rows.length / Math.max(1, panel.columns.length)));
  const buttons = panel.heads.map((name, index) => {
    const button = make("button", "head");
    Object.assign(button, { type: "button", tabIndex: index === state.head ? 0 : -1 });
    const title = /^\d/.test(name) ? t("Head {name}", { name }) : t(name);
    button.setAttribute("aria-label", title);
    button.setAttribute("aria-pressed", String(index === state.head));
    button.dataset.index = index;
    const canvas = make("canvas");
    const values = layer.head(index);
    drawSmall(canvas, cellImage(values, panel.rows.length, panel.columns.length, largest(values)), width, Math.round(width * ratio));
    button.append(canvas, make("span", "", title));
    button.addEventListener("click", () => change({ head: index }));
    return button;
  });
  const focused = grid.contains(document.activeElement);
  grid.replaceChildren(...buttons);
  if (focused) buttons[state.head].focus();
}

async function showMatrix(panel) {
  const { view, layer, head } = state;
  const values = (await layerOf(panel.name, layer)).head(head);
  if (view !== state.view || layer !== state.layer || head !== state.head) return;
  const limit = panel.scale === "mask" ? 1.4 : largest(values);
  heatmap.show(panel, values, limit);
  const signed = panel.scale === "signed";
  element("legend-low").textContent = written(signed ? -limit : 0, panel.scale);
  element("legend-high").textContent = panel.scale === "mask" ? "1" : written(limit, panel.scale);
  const pen = element("legend").getContext("2d");
  for (let x = 0; x < 120; x++) {
    const share = x / 119;
    pen.fillStyle = css(shade(signed ? 2 * share - 1 : share, panel.scale === "mask" ? 1.4 : 1));
    pen.fillRect(x, 0, 1, 10);
  }
  const place = { layer: layer + 1, head: t(panel.heads[head]) };
  const where = panel.heads.length > 1 ? t(", layer {layer}, head {head}", place) : "";
  const size = { title: t(panel.title), where, rows: panel.rows.length, columns: panel.columns.length };
  heatmap.canvas.setAttribute("aria-label", t("{title}{where}: {rows} rows, {columns} columns", size));
}

async function showCell(cell, chosen) {
  const panel = panelInView();
  if (!cell) {
    element("cell").textContent = "";
    return;
  }
  const value = (await layerOf(panel.name, state.layer)).row(state.head, cell.row)[cell.column];
  element("cell").textContent = `${panel.rows[cell.row]} → ${panel.columns[cell.column]}  ${written(value, panel.scale)}`;
  if (chosen) choose(cell.row);
}

// ---- steps

function buildSteps() {
  if (!look.steps) return;
  element("step").max = look.steps.read.length - 1;
  element("step-target").replaceChildren(...look.steps.read.map((label, i) => tokenElement("span", label, i)));
  element("step-source").replaceChildren(...look.steps.source.map((label, i) => tokenElement("span", label, i)));
  element("step-source-box").hidden = !look.steps.cross;
  if (!look.steps.self) element("step-target-title").textContent = t("Read so far");
  element("step").addEventListener("input", () => change({ step: Number(element("step").value) }));
  element("previous").addEventListener("click", () => moveStep(-1));
  element("next").addEventListener("click", () => moveStep(1));
}

function moveStep(by) {
  change({ step: Math.max(0, Math.min(look.steps.read.length - 1, state.step + by)) });
}

async function showStep() {
  const { steps } = look;
  const { step, layer, head } = state;
  const now = moment();
  element("step").value = step;
  element("step-number").textContent = t("{step} of {count}", { step: step + 1, count: steps.read.length });
  element("step").setAttribute("aria-valuetext", t("step {step}: writes {token}", { step: step + 1, token: steps.written[step] }));
  element("previous").disabled = step === 0;
  element("next").disabled = step === steps.read.length - 1;
  const said = element("said");
  said.replaceChildren(t("After "), make("bdi", "piece", steps.read[step]), t(" the model wrote "));
  const chance = t(" with probability {chance}.", { chance: steps.chances[step].toFixed(3) });
  said.append(make("bdi", "piece strong", steps.written[step]), chance);
  showBars(element("candidates"), steps.candidates[step], "weights");
  const own = steps.self && (await layerOf(steps.self, layer)).row(head, step);
  const across = steps.cross && (await layerOf(steps.cross, layer)).row(head, step);
  if (now.passed()) return;
  if (own) shadeStrip(element("step-target"), own, "weights", step + 1);
  else hideLater(element("step-target"), step + 1);
  if (across) shadeStrip(element("step-source"), across, "weights");
  element("stepper").dataset.step = step;
}

// ---- all together

let built = null;

async function show() {
  const panel = panelInView();
  const stepping = state.view === STEP_VIEW;
  showControls(panel);
  showColoured();
  const now = moment();
  element("stepper").hidden = !stepping;
  element("tokens").hidden = stepping;
  element("tokens").querySelector(".strips").hidden = panel.name === "positions"; // position numbers need no strip of tokens
  element("heads").hidden = stepping || panel.heads.length === 1;
  element("matrix").hidden = stepping;
  if (stepping) {
    await showStep();
  } else {
    if (built !== panel) buildStrips(panel);
    built = panel;
    element("tokens-title").textContent = t(panel.title);
    element("explained").textContent = t(panel.explained);
    element("rows-title").textContent = t("{title} (point at a token)", { title: t(panel.rowTitle) });
    element("columns-title").textContent = t(panel.columnTitle);
    await showRow();
    await showMatrix(panel);
    if (panel.heads.length > 1) await showHeads(panel);
  }
  if (now.passed()) return;
  document.documentElement.dataset.shown = [state.view, state.layer + 1, state.head + 1, stepping ? state.step : state.row].join(" ");
}

function change(part) {
  Object.assign(state, part);
  const radio = element(`view-${state.view}`);
  if (radio) radio.checked = true;
  return show();
}

function turn(name, by, count) {
  change({ [name]: (state[name] + by + count) % count });
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
  const panel = panelInView();
  const forward = { l: 1, L: -1, h: 1, H: -1, n: 1, p: -1 }[event.key];
  if (!forward) return;
  const key = event.key.toLowerCase();
  if (key === "l") turn("layer", forward, panel.layers);
  else if (key === "h") turn("head", forward, panel.heads.length);
  else if (state.view === STEP_VIEW) moveStep(forward);
  else choose(Math.max(0, Math.min(panel.rows.length - 1, state.row + forward)));
}

function rove(event) {
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const current = event.target.closest("button");
  if (!by || !current) return;
  event.preventDefault();
  const next = by > 0 ? current.nextElementSibling : current.previousElementSibling;
  if (!next) return;
  next.focus();
  if (next.classList.contains("head")) change({ head: Number(next.dataset.index) });
}

function zoom(by) {
  heatmap.zoom = Math.max(1, Math.min(32, heatmap.zoom * by));
  heatmap.layout();
}

function start() {
  translatePage();
  readColours();
  buildViews();
  buildSteps();
  element("note").hidden = !look.note;
  element("note").querySelector("code").textContent = look.note;
  document.querySelector("nav").hidden = element("views").hidden && look.panels[0].layers * look.panels[0].heads.length === 1;
  element("source-text").hidden = !element("source-text").textContent;
  // An encoder without labels reads a text and writes none.
  element("target-text").hidden = element("target-text").textContent === element("source-text").textContent;
  for (const name of ["layer", "head"]) {
    element(name).addEventListener("change", (event) => change({ [name]: event.target.selectedIndex }));
  }
  element("rows").addEventListener("pointerleave", () => preview(null));
  element("rows").addEventListener("keydown", rove);
  element("head-grid").addEventListener("keydown", rove);
  element("zoom-in").addEventListener("click", () => zoom(1.6));
  element("zoom-out").addEventListener("click", () => zoom(1 / 1.6));
  element("theme").addEventListener("click", () => {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    readColours();
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (readColours(), show()));
  document.addEventListener("keydown", onKey);
  window.addEventListener("resize", () => state.view !== STEP_VIEW && heatmap.layout());
  show();
}

start();

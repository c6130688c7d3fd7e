// Maps over a picture: where each head looks, attention through all layers, and what spoke for the label.

const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const ATTENDED = [220, 30, 30];
const RAISED = [11, 85, 215];
const LOWERED = [232, 89, 12];
const EXPLAINED = {
  head: "Red: what this head looks at (from [CLS], or all patches on average).",
  rollout: "Attention rollout: attention through all layers. Red patches reach the answer most.",
  saliency: "Gradient × input: blue pixels raised the log-odds of the label, orange ones lowered them.",
};
let chosen = 0;

function nameOf({ kind, layer, head }) {
  if (kind === "head") return t("Layer {layer}, head {head}", { layer, head });
  return t(kind === "rollout" ? "Attention rollout" : "Gradient × input");
}

function draw(canvas, { rows, columns, signed, values }) {
  canvas.width = columns;
  canvas.height = rows;
  const pixels = new ImageData(columns, rows);
  const bytes = Uint8Array.from(atob(values), (sign) => sign.charCodeAt(0));
  bytes.forEach((byte, place) => {
    const share = signed ? (byte - 128) / 127 : byte / 255;
    const colour = signed ? (share >= 0 ? RAISED : LOWERED) : ATTENDED;
    pixels.data.set([...colour, Math.round(255 * Math.abs(share))], 4 * place);
  });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}

function choose(place) {
  chosen = place;
  const map = data.maps[place];
  draw(element("shown"), map);
  element("name").textContent = nameOf(map);
  element("explained").textContent = t(EXPLAINED[map.kind]);
  document.querySelectorAll("#maps button").forEach((button, number) => {
    button.setAttribute("aria-pressed", String(number === place));
  });
  document.documentElement.dataset.shown = `${map.kind}-${map.layer ?? 0}-${map.head ?? 0}`;
}

function thumbnail(map, place) {
  const button = document.createElement("button");
  button.type = "button";
  const over = document.createElement("div");
  over.className = "over";
  const image = document.querySelector("#large img").cloneNode();
  image.alt = "";
  const canvas = document.createElement("canvas");
  draw(canvas, map);
  over.append(image, canvas);
  button.append(over, map.kind === "head" ? t("Head {name}", { name: map.head }) : nameOf(map));
  button.addEventListener("click", () => choose(place));
  return button;
}

function row(title, maps) {
  const heading = document.createElement("h3");
  heading.textContent = title;
  const place = document.createElement("div");
  place.className = "row";
  place.append(...maps.map((map) => thumbnail(map, data.maps.indexOf(map))));
  return [heading, place];
}

translatePage();
const layers = [...new Set(data.maps.map((map) => map.layer ?? 0))];
for (const layer of layers) {
  const title = layer ? t("Layer {layer}", { layer }) : t("All layers together");
  element("maps").append(...row(title, data.maps.filter((map) => (map.layer ?? 0) === layer)));
}
element("opacity").addEventListener("input", (event) => {
  for (const canvas of document.querySelectorAll("canvas")) canvas.style.opacity = event.target.value;
});
addEventListener("keydown", (event) => {
  if (event.target.tagName === "INPUT") return;
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step) choose((chosen + step + data.maps.length) % data.maps.length);
});
element("opacity").dispatchEvent(new Event("input"));
choose(0);

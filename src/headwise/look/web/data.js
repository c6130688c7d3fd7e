"use strict";
// The data of the page: descriptions are read at once, the weights of a layer when it is first shown.

const look = JSON.parse(document.getElementById("data").textContent);
const STEPS_OF_ONE = 10000;
const panelByName = new Map(look.panels.map((panel) => [panel.name, panel]));

async function unpack(id) {
  const text = atob(document.getElementById(id).textContent);
  const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function readSteps(bytes) {
  const count = bytes.length / 2;
  const values = new Float32Array(count);
  for (let i = 0; i < count; i++) {
    const steps = bytes[i] * 256 + bytes[count + i];
    // Stored numbers are rounded down, so take the middle of the step. Zero means masked, and stays zero.
    values[i] = steps ? Math.min(1, (steps + 0.5) / STEPS_OF_ONE) : 0;
  }
  return values;
}

// Matrices of one layer: `values` holds head after head, row after row. The last few layers are cached.
const opened = new Map();
const MOST_OPEN = 6;

function layerOf(name, layer) {
  const id = `${name}-${layer}`;
  if (!opened.has(id)) {
    if (opened.size >= MOST_OPEN) opened.delete(opened.keys().next().value);
    opened.set(id, openLayer(id, panelByName.get(name)));
  }
  return opened.get(id);
}

async function openLayer(id, panel) {
  const bytes = await unpack(id);
  const values = panel.scale === "signed" ? new Float32Array(bytes.buffer) : readSteps(bytes);
  const size = panel.rows.length * panel.columns.length;
  const head = (index) => values.subarray(index * size, (index + 1) * size);
  return { head, row: (index, row) => head(index).subarray(row * panel.columns.length, (row + 1) * panel.columns.length) };
}

function largest(values) {
  let limit = 0;
  for (const value of values) limit = Math.max(limit, Math.abs(value));
  return limit || 1;
}

function written(value, scale) {
  if (scale === "mask") return value ? "1" : "0";
  return value.toFixed(3).replace("-", "−");
}

// Elements. Text only ever becomes text nodes: nothing here parses HTML.
export const byId = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children (elements or text). `on…` values are listeners. */
export function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function makeSvg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** An <option> list, keeping the choice where it still exists. */
export function fillSelect(select, options, chosen = select.value) {
  select.replaceChildren(...options.map(([value, label]) => make("option", { value }, label)));
  if (options.some(([value]) => value === chosen)) select.value = chosen;
}

export function show(element, visible) {
  element.hidden = !visible;
}

/** An empty place says what could be here and how it gets here. */
export function emptyState(title, explanation, command = null) {
  return make(
    "div",
    { class: "empty" },
    make("p", { class: "empty-title" }, title),
    make("p", {}, explanation),
    command === null ? null : make("p", {}, make("code", {}, command)),
  );
}

/** Copies text, and says so on the button for a moment. */
export async function copyText(button, text, done, failed) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = done;
  } catch {
    button.textContent = failed;
  }
  setTimeout(() => (button.textContent = before), 1500);
}

/** Calls with a file that is dropped on an element. */
export function listenForFiles(element, taken) {
  for (const name of ["dragenter", "dragover"]) {
    element.addEventListener(name, (event) => {
      event.preventDefault();
      element.classList.add("over-it");
    });
  }
  element.addEventListener("dragleave", () => element.classList.remove("over-it"));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    element.classList.remove("over-it");
    taken(event.dataTransfer.files[0]);
  });
}

// The text of a classifier in colours: which words moved its label.

function showColoured() {
  const { coloured } = look;
  element("coloured").hidden = !coloured;
  if (!coloured) return;
  element("coloured-label").textContent = coloured.label;
  element("coloured-chance").textContent = coloured.chance.toFixed(3);
  const limit = Math.max(...coloured.words.map(([, value]) => Math.abs(value)), 1e-9);
  const words = coloured.words.map(([text, value]) => {
    const word = make("bdi", "", text.trim());
    const colour = shade(value, limit);
    Object.assign(word.style, { backgroundColor: css(colour), color: contrast(colour) });
    word.title = written(value, "signed");
    word.tabIndex = 0;
    word.setAttribute("aria-label", `${text.trim()}: ${written(value, "signed")}`);
    return text.startsWith(" ") ? [" ", word] : [word];
  });
  element("coloured-text").replaceChildren(...words.flat());
}

// Cross-attention over a spectrogram, token by token as the text is written.

const data = JSON.parse(document.getElementById("data").textContent);
const get = (id) => document.getElementById(id);
const ROW = 18, LABEL = 90, COLOUR = [232, 89, 12];
const ink = () => getComputedStyle(document.body).color;
let step = 0, shown = 0, timer = null;

// Weights of each map, one byte per token and position of the sound.
const maps = data.maps.map((map) => Uint8Array.from(atob(map.rows), (sign) => sign.charCodeAt(0)));
const row = (token) => maps[shown].subarray(token * data.positions, (token + 1) * data.positions);

function drawNow() {
  const canvas = get("now");
  canvas.width = data.positions;
  canvas.height = 1;
  const pixels = new ImageData(data.positions, 1);
  row(step).forEach((weight, place) => pixels.data.set([...COLOUR, Math.round(weight * 0.75)], 4 * place));
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}

function drawAll() {
  const canvas = get("all"), count = data.tokens.length;
  canvas.width = canvas.clientWidth || 1000;
  canvas.height = count * ROW + 20;
  canvas.style.height = `${canvas.height}px`;
  const pen = canvas.getContext("2d");
  pen.clearRect(0, 0, canvas.width, canvas.height);
  const strip = document.createElement("canvas");
  strip.width = data.positions;
  strip.height = count;
  const pixels = new ImageData(data.positions, count);
  maps[shown].forEach((weight, place) => pixels.data.set([...COLOUR, weight], 4 * place));
  strip.getContext("2d").putImageData(pixels, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(strip, 0, 0, canvas.width, count * ROW);
  pen.font = "12px system-ui, sans-serif";
  data.tokens.forEach((token, number) => {
    const top = number * ROW;
    if (number === step) {
      pen.strokeStyle = ink();
      pen.strokeRect(0.5, top + 0.5, canvas.width - 1, ROW - 1);
    }
    pen.fillStyle = getComputedStyle(canvas).backgroundColor;
    pen.globalAlpha = 0.75;
    pen.fillRect(0, top + 1, Math.min(LABEL, pen.measureText(token).width + 8), ROW - 2);
    pen.globalAlpha = 1;
    pen.fillStyle = ink();
    pen.fillText(token, 4, top + 13);
  });
  pen.fillStyle = ink();
  for (let second = 0; second <= data.seconds; second += Math.max(1, Math.round(data.seconds / 12))) {
    pen.fillText(`${second} s`, (second / data.seconds) * canvas.width, count * ROW + 14);
  }
}

function show(wanted) {
  step = Math.min(Math.max(0, wanted), data.tokens.length - 1);
  get("step").value = step;
  const weights = row(step), most = weights.indexOf(Math.max(...weights));
  const seconds = (most * data.seconds / data.positions).toFixed(2);
  get("where").textContent = t("{token}: most at {seconds} s", { token: data.tokens[step], seconds });
  [...get("text").children].forEach((span, number) => {
    span.className = number === step ? "current" : number < step ? "written" : "";
  });
  drawNow();
  drawAll();
}

function stop() {
  clearInterval(timer);
  timer = null;
  get("play").textContent = t("Play");
}

function play() {
  if (timer) return stop();
  if (step === data.tokens.length - 1) step = -1;
  get("play").textContent = t("Stop");
  timer = setInterval(() => (step + 1 < data.tokens.length ? show(step + 1) : stop()), 400);
  show(step + 1);
}

get("text").replaceChildren(...data.tokens.map((token, number) => {
  const span = document.createElement("span");
  span.textContent = token;
  span.addEventListener("click", () => show(number));
  return span;
}));
function titleOf({ layer, head, title }) {
  if (layer && head) return t("Layer {layer}, head {head}", { layer, head });
  return layer ? t("Layer {layer}", { layer }) : t(title);
}
data.maps.forEach((map, number) => get("map").add(new Option(titleOf(map), number)));
get("map").addEventListener("change", (event) => { shown = Number(event.target.value); show(step); });
get("step").max = data.tokens.length - 1;
get("step").addEventListener("input", (event) => show(Number(event.target.value)));
get("back").addEventListener("click", () => show(step - 1));
get("next").addEventListener("click", () => show(step + 1));
get("play").addEventListener("click", play);
get("all").addEventListener("click", (event) => show(Math.floor(event.offsetY / ROW)));
addEventListener("resize", drawAll);
addEventListener("keydown", (event) => {
  if (event.target.tagName === "SELECT" || event.target.tagName === "INPUT") return;
  if (event.key === "ArrowLeft" || event.key === "ArrowUp") show(step - 1);
  if (event.key === "ArrowRight" || event.key === "ArrowDown") show(step + 1);
});
translatePage();
show(0);
document.documentElement.dataset.shown = "sound";

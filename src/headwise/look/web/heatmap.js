// Drawing matrices: a small image with one pixel per cell, enlarged without smoothing; labels if there is room.

const colours = { paper: [255, 255, 255], ink: [0, 0, 0], strong: [0, 0, 0], below: [0, 0, 0], line: [0, 0, 0] };

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of Object.keys(colours)) {
    const value = style.getPropertyValue(`--${name}`).trim();
    colours[name] = [1, 3, 5].map((start) => parseInt(value.slice(start, start + 2), 16));
  }
}

// Interpolates from the background colour to the strong one, or to a second colour for negative values.
function shade(value, limit) {
  const end = value < 0 ? colours.below : colours.strong;
  const share = Math.min(1, Math.abs(value) / limit);
  return colours.paper.map((from, i) => Math.round(from + (end[i] - from) * share));
}

function css(rgb) {
  return `rgb(${rgb.join(" ")})`;
}

// Black or white, whichever is read better on a colour: at least 4.5 to 1 (relative luminance as in WCAG).
function contrast(rgb) {
  const [red, green, blue] = rgb.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

const SHADES = 255; // on each side of zero

function cellImage(values, rows, columns, limit) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, columns);
  canvas.height = Math.max(1, rows);
  const image = new ImageData(canvas.width, canvas.height);
  const table = Array.from({ length: 2 * SHADES + 1 }, (_, i) => shade(i - SHADES, SHADES));
  for (let i = 0; i < values.length; i++) {
    const share = Math.max(-1, Math.min(1, values[i] / limit));
    const [red, green, blue] = table[Math.round(share * SHADES) + SHADES];
    image.data[4 * i] = red;
    image.data[4 * i + 1] = green;
    image.data[4 * i + 2] = blue;
    image.data[4 * i + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

function prepare(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

function drawSmall(canvas, image, width, height) {
  const pen = prepare(canvas, width, height);
  pen.imageSmoothingEnabled = image.width > width;
  pen.drawImage(image, 0, 0, width, height);
}

const READABLE = 14; // pixels per cell that has a label
const MOST_READ = 80; // rows or columns that are always labelled

// The large matrix. Its canvas is only as large as its visible part; labels stay in place while the cells scroll.
class Heatmap {
  constructor(onCell) {
    this.canvas = document.getElementById("heatmap");
    this.scroller = document.getElementById("scroller");
    this.spacer = document.getElementById("spacer");
    this.zoom = 1;
    this.cursor = null;
    this.onCell = onCell;
    this.scroller.addEventListener("scroll", () => this.draw());
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.place(null));
    this.canvas.addEventListener("keydown", (event) => this.move(event));
    this.canvas.addEventListener("click", (event) => this.onCell(this.cellAt(event), true));
  }

  show(panel, values, limit) {
    Object.assign(this, { panel, values, limit });
    this.image = cellImage(values, panel.rows.length, panel.columns.length, limit);
    this.layout();
  }

  layout() {
    if (!this.panel) return; // the window may change its size before the first matrix is there
    const { rows, columns } = this.panel;
    const width = this.scroller.clientWidth;
    const longest = (labels) => Math.min(110, 10 + Math.max(0, ...labels.map((label) => this.labelWidth(label))));
    const labels = { left: longest(rows), top: longest(columns) };
    const roomy = (width - labels.left) / Math.max(1, columns.length);
    // If there are few, keep the labels readable and scroll. If there are many, show all at once; the reader can zoom in.
    const fit = Math.max(rows.length, columns.length) <= MOST_READ ? Math.max(READABLE, roomy) : roomy >= READABLE ? roomy : width / columns.length;
    this.cell = Math.max(0.5, Math.min(48, Math.min(columns.length <= 12 ? 44 : 28, fit) * this.zoom));
    const labelled = this.cell >= READABLE;
    this.left = labelled ? labels.left : 0;
    this.top = labelled ? labels.top : 0;
    const full = { width: this.left + this.cell * columns.length, height: this.top + this.cell * rows.length };
    this.spacer.style.width = `${full.width}px`;
    this.spacer.style.height = `${full.height}px`;
    this.scroller.style.height = `${Math.min(full.height + 16, Math.max(320, window.innerHeight * 0.85))}px`;
    this.draw();
  }

  labelWidth(label) {
    const pen = this.canvas.getContext("2d");
    pen.font = this.font();
    return pen.measureText(label).width;
  }

  font() {
    return `12px ${getComputedStyle(document.body).fontFamily}`;
  }

  draw() {
    if (!this.panel) return;
    const width = Math.min(this.scroller.clientWidth, this.spacer.offsetWidth);
    const height = Math.min(this.scroller.clientHeight, this.spacer.offsetHeight);
    const pen = prepare(this.canvas, width, height);
    const x = -this.scroller.scrollLeft + this.left;
    const y = -this.scroller.scrollTop + this.top;
    pen.save();
    pen.beginPath();
    pen.rect(this.left, this.top, width - this.left, height - this.top);
    pen.clip();
    pen.imageSmoothingEnabled = this.cell < 1;
    pen.drawImage(this.image, x, y, this.cell * this.image.width, this.cell * this.image.height);
    pen.strokeStyle = css(colours.line);
    pen.lineWidth = 1;
    pen.strokeRect(x + 0.5, y + 0.5, this.cell * this.image.width - 1, this.cell * this.image.height - 1);
    this.drawCursor(pen, x, y);
    pen.restore();
    if (this.left) this.drawLabels(pen, x, y, width, height);
  }

  drawLabels(pen, x, y, width, height) {
    pen.font = this.font();
    pen.textBaseline = "middle";
    pen.fillStyle = css(colours.ink);
    const { rows, columns } = this.panel;
    const first = Math.max(0, Math.floor((this.top - y) / this.cell));
    for (let i = first; i < rows.length && y + i * this.cell < height; i++) {
      const middle = y + (i + 0.5) * this.cell;
      if (middle < this.top) continue;
      pen.textAlign = "right";
      pen.globalAlpha = this.cursor && this.cursor.row === i ? 1 : 0.75;
      pen.fillText(this.shortened(pen, rows[i], this.left - 8), this.left - 6, middle);
    }
    pen.textAlign = "left";
    for (let i = Math.max(0, Math.floor((this.left - x) / this.cell)); i < columns.length && x + i * this.cell < width; i++) {
      const middle = x + (i + 0.5) * this.cell;
      if (middle < this.left) continue;
      pen.save();
      pen.translate(middle, this.top - 6);
      pen.rotate(-Math.PI / 2);
      pen.globalAlpha = this.cursor && this.cursor.column === i ? 1 : 0.75;
      pen.fillText(this.shortened(pen, columns[i], this.top - 8), 0, 0);
      pen.restore();
    }
    pen.globalAlpha = 1;
  }

  shortened(pen, label, room) {
    if (pen.measureText(label).width <= room) return label;
    let short = [...label];
    while (short.length > 1 && pen.measureText(`${short.join("")}…`).width > room) short = short.slice(0, -1);
    return `${short.join("")}…`;
  }

  drawCursor(pen, x, y) {
    if (!this.cursor) return;
    const { row, column } = this.cursor;
    const size = Math.max(3, this.cell);
    pen.strokeStyle = css(colours.ink);
    pen.lineWidth = 1.5;
    pen.strokeRect(x + column * this.cell, y + row * this.cell, size, size);
    pen.globalAlpha = 0.25;
    pen.lineWidth = 1;
    pen.strokeRect(x, y + row * this.cell, this.cell * this.panel.columns.length, this.cell);
    pen.globalAlpha = 1;
  }

  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.left + this.scroller.scrollLeft) / this.cell);
    const row = Math.floor((event.clientY - box.top - this.top + this.scroller.scrollTop) / this.cell);
    const inside = row >= 0 && column >= 0 && row < this.panel.rows.length && column < this.panel.columns.length;
    return inside ? { row, column } : null;
  }

  point(event) {
    this.place(this.cellAt(event));
  }

  place(cell) {
    this.cursor = cell;
    this.draw();
    this.onCell(cell, false);
  }

  move(event) {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Enter" && this.cursor) this.onCell(this.cursor, true);
    if (!steps) return;
    event.preventDefault();
    const { row, column } = this.cursor || { row: -steps[0], column: -steps[1] };
    const within = (value, count) => Math.max(0, Math.min(count - 1, value));
    const cell = {
      row: within(row + steps[0], this.panel.rows.length),
      column: within(column + steps[1], this.panel.columns.length),
    };
    this.reveal(cell);
    this.place(cell);
  }

  reveal(cell) {
    const show = (at, offset, room, view) => (at < offset ? at : at + this.cell > offset + view - room ? at + this.cell - view + room : offset);
    this.scroller.scrollLeft = show(cell.column * this.cell, this.scroller.scrollLeft, this.left, this.scroller.clientWidth);
    this.scroller.scrollTop = show(cell.row * this.cell, this.scroller.scrollTop, this.top, this.scroller.clientHeight);
  }
}

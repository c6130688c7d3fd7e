// A picture from the reader: dropped, pasted, chosen as a file, or taken with the camera.
import { byId, listenForFiles, show } from "./dom.js";
import { onLanguage, t } from "./language.js";

const READ = ["image/png", "image/jpeg", "image/webp", "image/bmp"]; // by the server
const LARGEST = 8 * 2 ** 20; // bytes; larger ones are made smaller here
const MOST_PIXELS = 25_000_000; // that the server reads; pictures with more are made smaller here
const SIDE = 1600; // pixels of the longer side of a picture that is made smaller

export class Pictures {
  /** `isIdle()`: what is pasted is for somebody else; `taken(problem)` is called with each picture. */
  constructor(isIdle, taken) {
    this.onTaken = taken;
    this.taken = null; // {blob, name, number}
    this.stream = null;
    this.wanted = null; // a Symbol from the click that asks for the camera until it is stopped
    this.count = 0; // of the pictures given so far
    const drop = byId("picture-drop");
    for (const name of ["picture-file", "picture-capture"]) {
      byId(name).addEventListener("change", (event) => {
        this._take(event.target.files[0]);
        event.target.value = "";
      });
    }
    byId("picture-choose").addEventListener("click", () => byId("picture-file").click());
    byId("picture-photo").addEventListener("click", () => (this.stream ? this.stopCamera() : this._startCamera()));
    byId("picture-shoot").addEventListener("click", () => this._shoot());
    byId("classify").addEventListener("keydown", (event) => event.key === "Escape" && this.stopCamera());
    listenForFiles(drop, (file) => this._take(file));
    document.addEventListener("paste", (event) => {
      const file = [...(event.clipboardData?.files ?? [])].find(({ type }) => type.startsWith("image/"));
      if (file && !isIdle()) this._take(file);
    });
    onLanguage(() => this._draw());
  }

  show(visible) {
    if (!visible) this.stopCamera();
    show(byId("picture-drop"), visible);
    show(byId("picture-buttons"), visible);
  }

  stopCamera() {
    if (this.stream) release(this.stream);
    this.stream = this.wanted = null; // a camera that is allowed from now on comes too late
    this._draw();
  }

  async _take(file) {
    if (!file) return;
    this.stopCamera();
    this.count += 1;
    const number = this.count;
    try {
      const bitmap = await createImageBitmap(file);
      const blob = isRead(file, bitmap) ? file : await smaller(bitmap);
      if (this.count === number) this._keep({ blob, name: file.name ?? "", number }, bitmap); // else there is a later one
      bitmap.close();
    } catch {
      if (this.count === number) this.onTaken(t("picture.unreadable"));
    }
  }

  _keep(taken, bitmap) {
    paint(byId("picture-canvas"), bitmap);
    this.taken = taken;
    this._draw();
    this.onTaken("");
  }

  async _startCamera() {
    if (!navigator.mediaDevices?.getUserMedia) {
      byId("picture-capture").click(); // no secure address: a telephone has a camera of its own for this
      return;
    }
    if (this.wanted) return; // the browser is still asking the reader
    const wanted = (this.wanted = Symbol("wanted"));
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" }, audio: false });
      if (this.wanted !== wanted) return release(stream);
      this.stream = stream;
      byId("picture-video").srcObject = stream;
      await byId("picture-video").play();
      if (this.wanted !== wanted) return;
      this._draw();
      byId("picture-shoot").focus();
    } catch {
      if (this.wanted !== wanted) return;
      this.stopCamera();
      this.onTaken(t("picture.camera.refused"));
    }
  }

  async _shoot() {
    const video = byId("picture-video");
    const canvas = new OffscreenCanvas(video.videoWidth, video.videoHeight);
    canvas.getContext("2d").drawImage(video, 0, 0);
    const blob = await canvas.convertToBlob({ type: "image/png" });
    await this._take(new File([blob], t("picture.photo.name"), { type: "image/png" }));
    byId("picture-photo").focus();
  }

  _draw() {
    const filming = this.stream !== null;
    show(byId("picture-video"), filming);
    show(byId("picture-canvas"), !filming && this.taken !== null);
    show(byId("picture-hint"), !filming && this.taken === null);
    show(byId("picture-shoot"), filming);
    byId("picture-photo").textContent = t(filming ? "cancel" : "picture.photo");
  }
}

function release(stream) {
  for (const track of stream.getTracks()) track.stop();
}

/** Whether the server reads the file as it is. */
function isRead({ type, size }, { width, height }) {
  return READ.includes(type) && size <= LARGEST && width * height <= MOST_PIXELS;
}

function paint(canvas, bitmap) {
  const scale = Math.min(1, SIDE / Math.max(bitmap.width, bitmap.height));
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  canvas.classList.toggle("tiny", Math.max(bitmap.width, bitmap.height) < 128);
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
}

async function smaller(bitmap) {
  const canvas = document.createElement("canvas");
  paint(canvas, bitmap);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

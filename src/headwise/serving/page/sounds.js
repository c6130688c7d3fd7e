// Sound in the page: decoding, recording, playing, and WAV files of a part. Nothing here is fetched, so the page's
// policy needs no exception for sound.
const RATE = 16000; // what speech models read

/** The samples of a file, or null where the browser does not know the format. */
export async function decode(file) {
  try {
    return await new OfflineAudioContext(1, 1, RATE).decodeAudioData(await file.arrayBuffer());
  } catch {
    return null;
  }
}

/** A WAV file of a part of the sound: mono, 16 bits. */
export function cut(buffer, start, end) {
  const rate = buffer.sampleRate;
  const from = Math.max(0, Math.floor(start * rate));
  const part = mono(buffer).subarray(from, Math.max(from + 1, Math.ceil(end * rate)));
  return wavOf(part, rate);
}

function mono(buffer) {
  if (buffer.numberOfChannels === 1) return buffer.getChannelData(0);
  const mixed = new Float32Array(buffer.length);
  for (let channel = 0; channel < buffer.numberOfChannels; channel += 1) {
    buffer.getChannelData(channel).forEach((sample, place) => (mixed[place] += sample / buffer.numberOfChannels));
  }
  return mixed;
}

function wavOf(samples, rate) {
  const view = new DataView(new ArrayBuffer(44 + 2 * samples.length));
  const write = (place, text) => [...text].forEach((sign, n) => view.setUint8(place + n, sign.charCodeAt(0)));
  write(0, "RIFF");
  view.setUint32(4, 36 + 2 * samples.length, true);
  write(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // whole numbers
  view.setUint16(22, 1, true); // one channel
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  write(36, "data");
  view.setUint32(40, 2 * samples.length, true);
  samples.forEach((sample, n) => view.setInt16(44 + 2 * n, 32767 * Math.min(1, Math.max(-1, sample)), true));
  return new Blob([view.buffer], { type: "audio/wav" });
}

/** Records the microphone until it is stopped. */
export class Recorder {
  static async start(onSeconds) {
    // What makes speech pleasant to hear changes what a model hears.
    const plain = { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: false };
    const stream = await navigator.mediaDevices.getUserMedia({ audio: plain, video: false });
    const recorder = new Recorder(stream);
    try {
      await recorder._listen(onSeconds);
    } catch (problem) {
      recorder.discard();
      throw problem;
    }
    return recorder;
  }

  constructor(stream) {
    [this.stream, this.context, this.blocks, this.length] = [stream, new AudioContext(), [], 0];
  }

  async _listen(onSeconds) {
    const { context } = this;
    await context.audioWorklet.addModule(new URL("page/recorder-worklet.js", document.baseURI));
    const node = new AudioWorkletNode(context, "recorder", { numberOfOutputs: 0 });
    node.port.onmessage = ({ data }) => {
      this.blocks.push(data);
      this.length += data.length;
      onSeconds(this.length / context.sampleRate);
    };
    context.createMediaStreamSource(this.stream).connect(node);
  }

  /** Lets go of the microphone. */
  async discard() {
    for (const track of this.stream.getTracks()) track.stop();
    await this.context.close();
  }

  /** The recording as a file and as samples, at the rate of speech models. */
  async stop() {
    const rate = this.context.sampleRate;
    await this.discard();
    const whole = new AudioBuffer({ length: Math.max(1, this.length), sampleRate: rate, numberOfChannels: 1 });
    let place = 0;
    for (const block of this.blocks) {
      whole.copyToChannel(block, 0, place);
      place += block.length;
    }
    const offline = new OfflineAudioContext(1, Math.max(1, Math.ceil(whole.duration * RATE)), RATE);
    const source = new AudioBufferSourceNode(offline, { buffer: whole });
    source.connect(offline.destination);
    source.start();
    const buffer = await offline.startRendering();
    return { buffer, wav: wavOf(buffer.getChannelData(0), RATE) };
  }
}

/** Plays from a place on; `onTime(seconds)` while it plays, and with null when it ends. */
export class Player {
  constructor(onTime) {
    this.onTime = onTime;
    this.source = null;
    this.from = null; // where it was started, while it plays
  }

  play(buffer, from) {
    this.stop();
    this.context ??= new AudioContext();
    this.context.resume();
    const source = new AudioBufferSourceNode(this.context, { buffer });
    source.connect(this.context.destination);
    const began = this.context.currentTime;
    source.onended = () => this.source === source && this.stop();
    source.start(0, from);
    [this.source, this.from] = [source, from];
    const tick = () => {
      if (this.source !== source) return;
      this.onTime(from + this.context.currentTime - began);
      requestAnimationFrame(tick);
    };
    tick();
  }

  stop() {
    if (!this.source) return;
    const { source } = this;
    [this.source, this.from] = [null, null];
    source.stop();
    this.onTime(null);
  }
}

/** The outline of the sound, and a line at the place that is being played. */
export function drawWave(canvas, buffer, seconds) {
  const [width, height] = [canvas.clientWidth * devicePixelRatio, canvas.clientHeight * devicePixelRatio];
  if (!width || !height) return;
  canvas.width = width;
  canvas.height = height;
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(canvas);
  pen.fillStyle = style.color;
  const samples = buffer.getChannelData(0);
  const step = samples.length / width;
  const loudest = peak(samples, 0, samples.length, Math.max(1, Math.floor(samples.length / 5000))) || 1;
  for (let x = 0; x < width; x += 1) {
    const size = peak(samples, Math.floor(x * step), Math.floor((x + 1) * step) + 1, Math.max(1, Math.floor(step / 50)));
    const tall = Math.max(1, (0.95 * height * size) / loudest);
    pen.fillRect(x, (height - tall) / 2, 1, tall);
  }
  if (seconds === null) return;
  pen.fillStyle = style.accentColor;
  pen.fillRect((width * seconds) / buffer.duration, 0, 2 * devicePixelRatio, height);
}

function peak(samples, from, to, step) {
  let found = 0;
  for (let n = from; n < Math.min(to, samples.length); n += step) found = Math.max(found, Math.abs(samples[n]));
  return found;
}

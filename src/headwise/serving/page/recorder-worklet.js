// Runs beside the sound: hands what the microphone hears to the page, a tenth of a second at a time.
const BLOCK = 4800; // samples

class RecorderProcessor extends AudioWorkletProcessor {
  constructor() {
    super();
    this.block = new Float32Array(BLOCK);
    this.filled = 0;
  }

  process([[samples]]) {
    for (const sample of samples ?? []) {
      this.block[this.filled] = sample;
      this.filled += 1;
      if (this.filled === BLOCK) {
        this.port.postMessage(this.block.slice());
        this.filled = 0;
      }
    }
    return true;
  }
}

registerProcessor("recorder", RecorderProcessor);

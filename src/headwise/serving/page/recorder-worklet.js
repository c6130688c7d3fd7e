// Runs beside the sound: hands what the microphone hears to the page at once, so that nothing is left when it stops.
class RecorderProcessor extends AudioWorkletProcessor {
  process([[samples]]) {
    if (samples) this.port.postMessage(samples.slice()); // the browser uses its array again
    return true;
  }
}

registerProcessor("recorder", RecorderProcessor);

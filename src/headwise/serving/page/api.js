// The server's HTTP interface: JSON or a form with a file out, JSON, text or a stream of events back, and one kind of error.
import { serverKey } from "./settings.js";
import { t } from "./language.js";

/** What went wrong, in one line for the reader. `retryAfter` in seconds, where the server said so. */
export class Problem extends Error {
  constructor(message, status = 0, retryAfter = null) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export const isAbort = (error) => error?.name === "AbortError";

async function send(path, { body, signal } = {}) {
  const headers = {};
  const key = serverKey();
  if (key) headers["X-API-Key"] = key;
  const isForm = body instanceof FormData;
  if (body !== undefined && !isForm) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(new URL(path, document.baseURI), {
      method: body === undefined ? "GET" : "POST",
      body: body === undefined || isForm ? body : JSON.stringify(body),
      headers,
      signal,
      cache: "no-store",
      credentials: "omit",
    });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new Problem(t("error.offline"));
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function problemOf(response) {
  let message = "";
  try {
    message = (await response.json()).error;
  } catch {
    // A proxy in between may answer with a page of its own.
  }
  if (response.status === 401 || response.status === 403) document.dispatchEvent(new CustomEvent("key-refused"));
  const wait = Number.parseFloat(response.headers.get("Retry-After") ?? "");
  const line = typeof message === "string" && message ? message : t("error.status", { status: response.status });
  return new Problem(line, response.status, Number.isFinite(wait) ? wait : null);
}

/** A body with a file; fields without a value are left out. */
export function formOf(fields) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined && value !== null && value !== "") form.append(name, value);
  }
  return form;
}

export async function getJson(path, options) {
  return (await send(path, options)).json();
}

export async function postJson(path, body, signal) {
  return (await send(path, { body, signal })).json();
}

export async function postForText(path, body, signal) {
  return (await send(path, { body, signal })).text();
}

/** The events of a stream, one object each; an event with `error` ends it with a Problem. */
export async function* postForEvents(path, body, signal) {
  const response = await send(path, { body, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  while (true) {
    const { value, done } = await reader.read();
    if (done) return;
    waiting += value;
    const events = waiting.split(/\r?\n\r?\n/);
    waiting = events.pop();
    for (const event of events) {
      const data = dataOf(event);
      if (!data) continue;
      const parsed = JSON.parse(data);
      if (parsed.error) throw new Problem(parsed.error);
      yield parsed;
    }
  }
}

function dataOf(event) {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice(5).trimStart()).join("\n");
}

// Talking to the server. Every failure becomes a Problem with a message that can be shown.

class Problem extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

const BASE = "/api/v1";

async function call(method, path, body, headers = {}) {
  const options = { method, headers };
  if (method === "POST") {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body ?? {});
  }
  let response;
  try {
    response = await fetch(BASE + path, options);
  } catch {
    throw new Problem("The server cannot be reached.", 0);
  }
  if (response.status === 204) return null;
  const data = await response.json().catch(() => null);
  if (!response.ok) {
    const detail = data && data.detail;
    const text = typeof detail === "string" ? detail : "The request was not understood.";
    if (response.status === 401) window.dispatchEvent(new Event("locked"));
    throw new Problem(text, response.status);
  }
  return data;
}

export const get = (path) => call("GET", path);
export const post = (path, body) => call("POST", path, body);

export const frameURL = (film, t, width) =>
  `${BASE}/films/${film}/frame?t=${Math.max(0, t).toFixed(3)}&width=${width}`;
export const pictureURL = (digest) => `${BASE}/pictures/${digest}`;
export const fileURL = (film) => `${BASE}/films/${film}/file`;
export const url = (path) => BASE + path;
export const clipURL = (film, start, end) =>
  url(`/films/${film}/clip?start=${start.toFixed(3)}&end=${end.toFixed(3)}`);

export const signIn = (token) => call("POST", "/session", {}, { Authorization: `Bearer ${token}` })
  .catch(() => { throw new Problem("That is not the token of this server."); });

// Uploads go through XMLHttpRequest because fetch does not report progress.
export function upload(file, onProgress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `${BASE}/films/upload?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = (event) => onProgress(event.loaded / Math.max(1, event.total));
    request.onerror = () => reject(new Problem("The upload was interrupted."));
    request.responseType = "json";
    request.onload = () => {
      const data = request.response;
      if (request.status < 300) resolve(data);
      else reject(new Problem((data && data.detail) || "The upload was refused.", request.status));
    };
    request.send(file);
  });
}

const KINDS = [
  "run_started", "step_began", "step_ended", "chat_called", "tool_called",
  "frames_seen", "scores_set", "noted", "drafted", "answered", "failed",
];

// Follow a run; EventSource reconnects by itself and sends the last id it saw.
export function follow(run, { onState, onEnd, onEvent = () => {}, onConnection = () => {} }) {
  const source = new EventSource(`${BASE}/runs/${run}/events?brief=1`);
  for (const kind of KINDS) {
    source.addEventListener(kind, (message) => onEvent(JSON.parse(message.data)));
  }
  source.addEventListener("state", (message) => onState(JSON.parse(message.data)));
  source.addEventListener("end", (message) => {
    source.close();
    onEnd(JSON.parse(message.data));
  });
  source.onopen = () => onConnection(true);
  source.onerror = () => onConnection(false);
  return () => source.close();
}

// All events of a run that has ended, in one go.
export async function pastEvents(run) {
  const response = await fetch(`${BASE}/runs/${run}/events?brief=1`);
  const text = await response.text();
  const events = [];
  for (const block of text.split("\n\n")) {
    const data = block.split("\n").find((line) => line.startsWith("data: "));
    if (data && /^id: /m.test(block)) events.push(JSON.parse(data.slice(6)));
  }
  return events;
}

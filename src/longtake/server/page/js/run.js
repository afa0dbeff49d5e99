// What is known about a run, built from its events; the same for live runs, finished ones and
// trace files.

import { follow } from "./api.js";

const ZERO = { calls: 0, tokens_in: 0, tokens_out: 0, frames: 0, cost: 0 };
export const ENDED = ["done", "failed", "cancelled", "broken"];

export class RunModel {
  constructor() {
    this.events = [];
    this.byId = new Map();
    this.depth = new Map();
    this.rows = [];
    this.strips = [];
    this.rounds = new Map();
    this.looks = [];
    this.agents = new Map();
    this.usage = { ...ZERO };
    this.began = null;
    this.answer = null;
    this.draft = "";
    this.checking = false;
    this.passages = [];
    // the film that is being read, if several are asked
    this.film = "";
    // texts of lines that contradict one another
    this.disagree = new Set();
    this.failure = null;
    this.started = null;
    this.status = null;
    this.connected = true;
    this.version = 0;
    this.listeners = new Set();
    this.pending = 0;
  }

  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  // one redraw per frame, however many events arrive
  changed() {
    this.version += 1;
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      for (const listener of this.listeners) listener(this.version);
    });
  }

  add(event) {
    if (this.byId.has(event.id)) return;
    this.byId.set(event.id, event);
    this.events.push(event);
    const parent = this.depth.get(event.parent);
    const depth = parent == null ? 0 : parent + 1;
    if (event.kind === "step_began") this.depth.set(event.id, depth);
    const handler = HANDLERS[event.kind];
    if (handler) handler(this, event, depth);
    this.changed();
  }

  // the first state says what was asked, with what it carries apart; later ones only what changed
  setStatus(status) {
    this.status = { ...this.status, ...status };
    if (status.answer) this.answer = status.answer;
    this.changed();
  }

  get question() {
    const { ask } = this.status || {};
    return ask ? ask.question : "";
  }

  get ended() {
    return this.status != null && ENDED.includes(this.status.state);
  }

  // the agent that looked, as the enclosing steps name it; otherwise the fallback
  agentOf(event, fallback) {
    let at = this.byId.get(event.parent);
    while (at) {
      const data = at.data || {};
      const name = data.agent || data.member || data.name;
      if (name) return String(name);
      at = this.byId.get(at.parent);
    }
    return fallback;
  }

  watch(run) {
    return follow(run, {
      onEvent: (event) => this.add(event),
      onState: (status) => this.setStatus(status),
      onEnd: (status) => this.setStatus({ ...status, position: 0 }),
      onConnection: (up) => {
        if (this.connected !== up) {
          this.connected = up;
          this.changed();
        }
      },
    });
  }
}

const row = (model, event, depth) => {
  event.depth = depth;
  model.rows.push(event);
};

const HANDLERS = {
  run_started(model, event, depth) {
    model.started = event;
    row(model, event, depth);
  },
  step_began(model, event, depth) {
    if (event.name === "film") Object.assign(model, { film: event.data.film, draft: "", passages: [] });
    row(model, event, depth);
  },
  step_ended(model, event) {
    const began = model.byId.get(event.step);
    if (began) began.ended = event;
  },
  chat_called(model, event, depth) {
    if (!event.error) {
      const used = event.usage;
      const sum = model.usage;
      sum.calls += used.calls;
      sum.tokens_in += used.tokens_in;
      sum.tokens_out += used.tokens_out;
      sum.frames += used.frames;
      sum.cost = sum.cost == null || used.cost == null ? null : sum.cost + used.cost;
    }
    model.checking = true;
    row(model, event, depth);
  },
  tool_called: row,
  noted(model, event, depth) {
    const data = event.data || {};
    if (event.label === "passages_found") model.passages = data.passages || [];
    if (event.label === "lines_disagree") (data.lines || []).forEach((text) => model.disagree.add(text));
    row(model, event, depth);
  },
  drafted(model, event) {
    model.draft = event.anew ? event.text : model.draft + event.text;
    model.checking = false;
  },
  frames_seen(model, event, depth) {
    const agent = model.agentOf(event, event.purpose || "frames");
    if (!model.agents.has(agent)) model.agents.set(agent, model.agents.size);
    for (const seen of event.frames) {
      model.looks.push({ time: seen.time, digest: seen.digest, agent, event: event.id });
    }
    row(model, event, depth);
  },
  scores_set(model, event, depth) {
    const round = (model.rounds.get(event.label) || 0) + 1;
    model.rounds.set(event.label, round);
    model.strips.push({ label: event.label, round, segments: event.segments,
      values: event.values, event: event.id });
    row(model, event, depth);
  },
  answered(model, event, depth) {
    model.answer = event.answer;
    model.usage = { ...model.usage, ...event.usage };
    row(model, event, depth);
  },
  failed(model, event, depth) {
    model.failure = event;
    row(model, event, depth);
  },
};

// A trace file, as longtake writes it: a line with the version, then events and pictures.
export function readTrace(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  const first = safeParse(lines[0]);
  if (!first || !first.longtake_trace) throw new Error("This is not a longtake trace.");
  const events = [];
  const pictures = new Map();
  for (const line of lines.slice(1)) {
    const item = safeParse(line);
    if (!item) continue;
    if (item.kind === "picture") pictures.set(item.digest, `data:image/jpeg;base64,${item.jpeg}`);
    else events.push(item);
  }
  return { events, pictures };
}

function safeParse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

export function modelOf(events, count = events.length) {
  const model = new RunModel();
  for (let i = 0; i < count; i += 1) model.add(events[i]);
  return model;
}

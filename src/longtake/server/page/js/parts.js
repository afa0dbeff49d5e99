// Small parts that several views share.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact-htm.js";
import { follow, get, post } from "./api.js";
import { count, duration, money, plural, share } from "./format.js";

export function useAsync(load, inputs) {
  const [state, setState] = useState({ loading: true });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let gone = false;
    setState((now) => ({ ...now, loading: true, error: null }));
    load().then((data) => !gone && setState({ data }))
      .catch((error) => !gone && setState({ error }));
    return () => { gone = true; };
  }, [...inputs, attempt]);
  return { ...state, again: () => setAttempt((n) => n + 1) };
}

export function useListener(names, listener, inputs = []) {
  useEffect(() => {
    names.forEach((name) => window.addEventListener(name, listener));
    return () => names.forEach((name) => window.removeEventListener(name, listener));
  }, inputs);
}

export function useSize(element, onSize) {
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => onSize(entry.contentRect));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
}

export function useModel(model) {
  const [version, setVersion] = useState(0);
  useEffect(() => {
    setVersion(model ? model.version : 0);
    return model ? model.subscribe(setVersion) : undefined;
  }, [model]);
  return version;
}

export function Trouble({ error, again, title = "That did not work" }) {
  return html`
    <div class="state" role="alert">
      <h2>${error.status === 0 ? "The server does not answer" : title}</h2>
      <p>${error.message}</p>
      ${again && html`<button onClick=${again}>Try again</button>`}
    </div>`;
}

export const Loading = ({ what }) => html`
  <div class="state" role="status"><span class="spinner" aria-hidden="true"></span>
    <p>${what}</p></div>`;

export function Bar({ value, label }) {
  return html`<div class="bar" role="progressbar" aria-label=${label} aria-valuemin="0"
    aria-valuemax="100" aria-valuenow=${Math.round(value * 100)}>
    <div style=${{ width: `${Math.min(100, value * 100)}%` }}></div></div>`;
}

// What a run has used, against its budget where it has one.
export function Meter({ usage, budget = {}, seconds }) {
  const tokens = usage.tokens_in + usage.tokens_out;
  const cells = [
    ["calls", count(usage.calls), usage.calls, budget.calls],
    ["frames", count(usage.frames), usage.frames, budget.frames],
    ["tokens", count(tokens), tokens, budget.tokens],
    ["cost", money(usage.cost), usage.cost || 0, budget.cost],
    ["time", duration(seconds ?? usage.seconds ?? 0), seconds ?? usage.seconds, budget.seconds],
  ];
  return html`<dl class="meter">
    ${cells.map(([name, text, value, limit]) => html`
      <div><dt>${name}</dt><dd>${text}</dd>
        ${limit ? html`<${Bar} value=${value / limit} label=${`${name} of the budget`} />` : null}
      </div>`)}
  </dl>`;
}

export function Dialog({ title, onClose, children }) {
  const element = useRef(null);
  useEffect(() => { element.current.showModal(); }, []);
  return html`
    <dialog ref=${element} onClose=${onClose} aria-labelledby="dialog-title">
      <header><h2 id="dialog-title">${title}</h2><span class="spacer"></span>
        <button class="quiet icon" aria-label="Close" onClick=${onClose}>×</button></header>
      ${children}
    </dialog>`;
}

// label and colour of a run, by the status of its answer or else by its state
const OUTCOMES = {
  answered: ["answered", "good"], unsupported: ["not supported", "warn"],
  abstained: ["no answer", "warn"], budget_spent: ["budget ran out", "warn"],
  not_credible: ["doubtful", "warn"], cancelled: ["cancelled", ""],
};
const STATES = {
  queued: ["waiting", ""], running: ["under way", "live"], done: ["done", "good"],
  failed: ["failed", "bad"], cancelled: ["cancelled", ""], broken: ["broken off", "bad"],
};

export function outcomeOf({ state, answer }) {
  const [text, tone] = (state === "done" && answer && OUTCOMES[answer.status]) || STATES[state];
  return { text, tone };
}

export function Pill({ run }) {
  const { text, tone } = outcomeOf(run);
  return html`<span class=${`pill ${tone}`}>${text}</span>`;
}

// hits of a search; if some are sure, the others are folded
export function Hits({ hits, draw, folded = false }) {
  const list = (some) => some.length > 0 && html`<ol class="hits" aria-label="Search results">
    ${some.map((hit) => html`<li>${draw(hit)}</li>`)}</ol>`;
  const unsure = hits.filter((hit) => !hit.sure);
  return html`${list(hits.filter((hit) => hit.sure))}${unsure.length > 0 && html`<details class="unsure"
    open=${unsure.length === hits.length && !folded}><summary>Unsure: ${plural(unsure.length, "moment")}</summary>
    ${list(unsure)}</details>`}`;
}

// the handler of a form, whether it is at work, and what went wrong
export function useSubmit(act) {
  const [{ busy, problem }, setState] = useState({});
  const submit = async (event) => {
    if (event) event.preventDefault();
    setState({ busy: true });
    try {
      await act();
      setState({});
    } catch (error) {
      setState({ problem: error.message });
    }
  };
  return [submit, busy, problem];
}

// A search box; `look` fetches the results, and `children` are further fields.
export function SearchBox({ label, query = "", look, onFound, hint, children }) {
  const [text, setText] = useState(query);
  const [submit, busy, problem] = useSubmit(async () => onFound(text.trim() ? await look(text) : null));
  useEffect(() => { if (query) submit(); }, []);
  return html`
    <form class="search" role="search" onSubmit=${submit}>
      <label class="hidden" for="search">${label}</label>
      <input id="search" type="search" data-search placeholder=${`${label}  /`} value=${text}
        onInput=${(event) => setText(event.target.value)} />
      ${children}
      <button disabled=${busy}>${busy ? "Searching…" : "Search"}</button>
    </form>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${busy && hint && html`<p class="muted small">${hint}</p>`}`;
}

// follow the progress of indexing, or of a download
export function useRun(id, onEnd, onProgress) {
  useEffect(() => {
    if (!id) return undefined;
    return follow(id, { onState: (status) => onProgress(status.progress || {}), onEnd });
  }, [id]);
}

// parts of a film's index
export const LAYERS = { subtitles: "Subtitles", frames: "Pictures", speech: "Speech", onscreen: "Text on screen" };
export const progressOf = (part, done) => `${LAYERS[part].toLowerCase()} ${share(done)}`;

// milliseconds between looks at what is being indexed
const OFTEN = 1000;
const SELDOM = 6000;

const IDLE = {
  busy: "Looking through the folders…",
  true: "Films are added as they appear.",
  false: "Watching adds these films, and others as they appear.",
};

// Which films the library knows, and the watching of the folders.
export function Folders({ onState }) {
  const [state, setState] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let gone = false;
    let timer = 0;
    const poll = async () => {
      const now = await get("/library").catch((error) => { setProblem(error.message); });
      if (gone) return;
      if (now) setState(now);
      if (now && onState) onState(now);
      timer = setTimeout(poll, now && now.busy ? OFTEN : SELDOM);
    };
    poll();
    return () => { gone = true; clearTimeout(timer); };
  }, [state && state.watching]);
  const watch = (on) => post("/library/watch", { on }).then(setState)
    .catch((error) => setProblem(error.message));
  if (!state) return problem && html`<p class="problem" role="alert">${problem}</p>`;
  const { doing, failed, films, ready } = state;
  return html`
    <section class="layers folders" aria-label="Folders" data-busy=${state.busy}>
      <div class="page-head"><h2>Folders</h2>
        <span class="muted small">${state.folders.join(", ")}</span><span class="spacer"></span>
        ${state.watching ? html`<button class="quiet" onClick=${() => watch(false)}>Stop watching</button>`
          : html`<button onClick=${() => watch(true)}>Watch these folders</button>`}</div>
      <p role="status">${ready} of ${plural(state.listed, "film")} can be searched together${films > ready
        && `, ${films - ready} only in part`}${films > 0 && html`<span class="muted"> · ${duration(state.seconds)}</span>`}</p>
      ${doing ? html`<p class="muted small">${doing.film}: ${progressOf(doing.part, doing.share)}, ${doing.job} of ${doing.jobs}
          ${doing.left != null && ` · about ${duration(doing.left)} left`}</p>
          <${Bar} value=${(doing.job - 1 + doing.share) / doing.jobs} label="Indexing" />`
        : html`<p class="muted small">${IDLE[state.busy ? "busy" : state.watching]}</p>`}
      ${Object.entries(failed).map(([name, why]) => html`<p class="problem">${name}: ${why}</p>`)}
      ${(problem || state.problem) && html`<p class="problem" role="alert">${problem || state.problem}</p>`}
    </section>`;
}

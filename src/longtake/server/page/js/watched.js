// A run that is being watched, follow-up questions, and earlier questions.

import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { get, post } from "./api.js";
import { Answer, Draft } from "./answer.js";
import { GetVision } from "./ask.js";
import { ago, said } from "./format.js";
import { Bar, Meter, Pill, outcomeOf, useAsync } from "./parts.js";
import { RunModel } from "./run.js";
import { Tree } from "./tree.js";

export function useWatched(run) {
  const [model, setModel] = useState(null);
  useEffect(() => {
    if (!run) {
      setModel(null);
      return undefined;
    }
    const fresh = new RunModel();
    setModel(fresh);
    return fresh.watch(run);
  }, [run]);
  return model;
}

// what the next question carries: what this one carried, and this one with its answer
export function followUpOf(model) {
  const { ask } = model.status;
  const turn = `Q: ${ask.question}\nA: ${said(model.answer)}`;
  return ask.carried ? `${ask.carried}\n${turn}` : turn;
}

export function Watched({ model, version, run, film, cited, about, onCite, onSeek, onFollowUp, onLook, go }) {
  const [now, setNow] = useState(Date.now() / 1000);
  const status = model.status || { state: "queued", progress: {} };
  const live = !model.ended;
  useEffect(() => {
    if (!live) return undefined;
    const timer = setInterval(() => setNow(Date.now() / 1000), 200);
    return () => clearInterval(timer);
  }, [live]);
  const seconds = live && status.started ? Math.max(0, now - status.started)
    : status.ended && status.started ? status.ended - status.started : 0;
  const { carried } = status.ask || {};
  // a run over several films ends in an answer of its own, and sums what each of them cost
  const whole = film || model.ended;
  const answer = whole ? model.answer : null;
  const usage = model.ended && status.answer ? status.usage : model.usage;
  const budget = (model.started && model.started.budget) || {};
  // on a telephone the answer is what counts
  const [wide] = useState(() => window.matchMedia("(min-width: 981px)").matches);
  const indexing = live && !model.started && Object.entries(status.progress || {});
  return html`
    <section class="run" aria-label="Run" data-state=${status.state} data-version=${version}>
      ${model.question && html`<h2 class="asked">${model.question}</h2>`}
      ${carried && html`<details class="carried-shown"><summary>Carried from the conversation</summary>
        <p>${carried}</p></details>`}
      <div class="run-head" role="status">
        <${Pill} run=${status} />
        ${status.position > 0 && html`<span>place ${status.position} in the queue</span>`}
        ${!model.connected && live && html`<span class="note">reconnecting…</span>`}
        <span class="spacer"></span>
        ${live && html`<button class="quiet" onClick=${() => post(`/runs/${run}/cancel`)}>
          Cancel</button>`}
      </div>
      ${indexing && indexing.length > 0 && html`<div class="indexing">
        <p class="muted small">Looking through the film first, once</p>
        ${indexing.map(([name, value]) => html`<${Bar} value=${value} label=${name} />`)}</div>`}
      ${status.error && status.state !== "cancelled" && html`<p class="problem" role="alert">
        ${status.error}</p>`}
      ${live && !answer && html`<${Draft} model=${model} onSeek=${onSeek} />`}
      <${Answer} answer=${answer} film=${film} run=${model.ended ? run : null} cited=${cited}
        record=${model.ended ? status : {}} disagree=${model.disagree} onCite=${onCite}
        onFollowUp=${onFollowUp}>
        ${film && (status.unseen || []).includes("the pictures") && answer && answer.status !== "answered"
          && (about.vision ? html`<${GetVision} offer=${about.vision} onDone=${about.again} />`
            : html`<div><button onClick=${onLook}>Look at the pictures</button></div>`)}
      </${Answer}>
      <${Meter} usage=${usage} budget=${budget} seconds=${seconds} />
      <div class="trace"><a href=${`/trace/${run}`} onClick=${(event) => {
          event.preventDefault();
          go(`/trace/${run}`);
        }}>Open in full</a>
        <details open=${wide && live}><summary>Steps</summary>
        <${Tree} model=${model} version=${version} run=${run} onSeek=${onSeek} live=${live} /></details></div>
    </section>`;
}

const FEW = 6;

export function History({ film, go, current, refresh }) {
  const [all, setAll] = useState(false);
  const runs = useAsync(() => get(`/runs?${film ? `film=${film}` : "kind=library"}&limit=100`), [film, current, refresh]);
  if (!runs.data) return null;
  const entries = threads(runs.data.runs.map((each) => each.run), current);
  if (!entries.length) {
    return current ? null : html`<div class="state quiet-state">
      <h2>${film ? "Ask about this film" : "Ask all films"}</h2>
      <p>Every answer cites moments that you can play, or says that nothing supports it.</p></div>`;
  }
  const shown = all ? entries : entries.slice(0, FEW);
  return html`<section class="history" aria-label="Earlier questions"><h2>Earlier questions</h2>
    <ul>${shown.map((entry) => html`<li><a href=${entry.href} onClick=${(event) => {
      event.preventDefault();
      go(entry.href);
    }}><span class="history-q">${entry.question}</span>
      <span class="muted small">${entry.text} · ${ago(entry.created)}</span></a></li>`)}</ul>
    ${entries.length > FEW && html`<button class="quiet" onClick=${() => setAll(!all)}>
      ${all ? "Show fewer" : `Show all ${entries.length}`}</button>`}</section>`;
}

// the runs of one comparison are one entry
function threads(runs, current) {
  const entries = [];
  const groups = new Map();
  for (const run of runs) {
    if (["index", "pull"].includes(run.kind) || run.id === current) continue;
    const { question } = run.ask;
    if (!run.group) {
      entries.push({ href: `/run/${run.id}`, question, created: run.created,
        text: `${(run.answer && said(run.answer)) || outcomeOf(run).text} · ${run.ask.method}` });
    } else if (!groups.has(run.group)) {
      const entry = { href: `/compare/${run.group}`, question, created: run.created, methods: 0 };
      groups.set(run.group, entry);
      entries.push(entry);
    }
    if (run.group) {
      const entry = groups.get(run.group);
      entry.methods += 1;
      entry.text = `comparison of ${entry.methods} methods`;
    }
  }
  return entries;
}

// A run and its answer, whose citations play in the player; its draft and its steps; and earlier
// questions.

import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { clipURL, frameURL, get, post, url } from "./api.js";
import { GetVision, methodName } from "./ask.js";
import { ago, clock, plural, said } from "./format.js";
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

// shows a citation that is clicked, or that the address names, once the answer is there
export function useCitations(model, { run, cited, ready, go }, show) {
  const shown = useRef(null);
  const cite = (number, each, clicked = true) => {
    shown.current = `${run}/${number}`;
    show(number, each, clicked);
    if (clicked) go(`/run/${run}?c=${number}`, { replace: true });
  };
  useEffect(() => {
    const each = model && model.answer && model.answer.evidence[cited];
    if (each && ready && shown.current !== `${run}/${cited}`) cite(cited, each, false);
  });
  return cite;
}

// what the next question carries: what this one carried, and this one with its answer
export function useFollowUp(model) {
  const [carried, setCarried] = useState("");
  const followUp = () => {
    const { ask } = model.status;
    const turn = `Q: ${ask.question}\nA: ${said(model.answer)}`;
    setCarried(ask.carried ? `${ask.carried}\n${turn}` : turn);
    document.getElementById("question").focus();
  };
  return { carried, setCarried, followUp };
}

export function Watched({ model, version, run, film, cited, about, onCite, onSeek, onFollowUp, onLook }) {
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
  // a run over several films ends with one answer, and with the sum of what they cost
  const whole = film || model.ended;
  const answer = whole ? model.answer : null;
  const usage = model.ended && status.answer ? status.usage : model.usage;
  const budget = (model.started && model.started.budget) || {};
  // the steps are folded on narrow screens
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
      <div class="trace"><a href=${`/trace/${run}`}>Open in full</a>
        <details open=${wide && live}><summary>Steps</summary>
        <${Tree} model=${model} version=${version} run=${run} onSeek=${film && onSeek} live=${live} /></details></div>
    </section>`;
}

const FEW = 6;

export function History({ film, current, refresh }) {
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
    <ul>${shown.map((entry) => html`<li><a href=${entry.href}><span class="history-q">${entry.question}</span>
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
        text: `${(run.answer && said(run.answer)) || outcomeOf(run).text} · ${methodName(run.ask.method)}` });
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

const SOURCES = { frame: "picture", caption: "picture, described", speech: "said",
  subtitle: "said (subtitles)", onscreen: "text on screen" };

// `record` is the server's record of a run that has ended; a replayed trace has none
export function Answer({ answer, film, record = {}, disagree, run, cited, onCite, onFollowUp, children }) {
  if (!answer) return null;
  const { claims = [], sources = [], scope, unseen = [] } = record;
  const text = said(answer);
  const filmOf = (number) => film || (sources[number] || {}).film;
  const mark = (number) => html`<${Mark} number=${number} each=${answer.evidence[number]}
    film=${filmOf(number)} onClick=${() => onCite && onCite(number, answer.evidence[number])} />`;
  const every = answer.evidence.map((_, number) => number);
  const parts = claims.length ? claims : text ? [{ text, citations: every.slice(0, 8) }] : [];
  const facts = [record.support, scope
    && `${plural(scope.searched, "film")} searched, ${scope.looked_at} looked at`].filter(Boolean);
  return html`
    <section class="answer" aria-label="Answer" aria-live="polite">
      <p class=${`answer-text ${text.length > 160 ? "long" : ""}`}>${parts.length
        ? parts.map((claim) => html`<span>${claim.text}</span>${claim.citations.map(mark)} `)
        : scope ? "In no film" : "No answer"}</p>
      ${record.outcome && html`<p class="note">${sentence(record.outcome)}</p>`}
      ${answer.reason && answer.reason !== record.outcome
        && html`<p class="reason">${answer.reason}</p>`}
      ${facts.length > 0 && html`<p class="support">${facts.map(sentence).join(" · ")}</p>`}
      ${unseen.length > 0 && html`<p class="unseen">Not looked at: ${unseen.join("; ")}</p>`}
      ${children}
      ${every.length > 0 && html`
        <h3>Citations</h3>
        <ol class="cards">${answer.evidence.map((each, number) => html`
          <${Card} each=${each} film=${filmOf(number)} number=${number + 1}
            name=${(sources[number] || {}).name} chosen=${cited === number}
            against=${disagree && disagree.has(each.text)}
            onClick=${() => onCite && onCite(number, each)} />`)}</ol>`}
      ${(answer.nearest || []).length > 0 && html`
        <h3>Not an answer: a search for “${answer.nearest[0].text}” finds these pictures</h3>
        <ol class="cards nearest">${answer.nearest.map((each, number) => html`
          <${Card} each=${{ ...each, text: "", source: "search result" }} film=${film}
            number=${number + 1} onClick=${() => onCite && onCite(number, each)} />`)}</ol>`}
      ${run && html`<div class="actions">
        ${onFollowUp && html`<button onClick=${onFollowUp}>Ask a follow-up</button>`}
        <${Share} run=${run} cites=${every.length > 0} /></div>`}
    </section>`;
}

const sentence = (text) => (text ? text[0].toUpperCase() + text.slice(1) : "");

const FILES = [["html", "Page with its stills"], ["md", "Markdown"]];
const CITED = [["mp4", "Reel: the cited stretches as one film"], ["srt", "Citations as subtitles (SRT)"]];

function Share({ run, cites }) {
  const offered = cites ? [...FILES, ...CITED] : FILES;
  return html`<details class="menu"><summary class="button">Share</summary><ul>
    ${offered.map(([ending, what]) => html`<li><a download
      href=${url(`/runs/${run}/export.${ending}`)}>${what}</a></li>`)}
    <li><a href=${url(`/runs/${run}/trace`)} download>Trace file</a></li></ul></details>`;
}

// the number of a citation; pointing at it or focusing it shows the still and the line
function Mark({ number, each, film, onClick }) {
  if (!each) return null;
  const { start, end } = each.segment;
  return html`<button class="cite" onClick=${onClick} data-start=${start}
    aria-label=${`Citation ${number + 1}, ${clock(start)}: ${each.text || each.source}`}>${number + 1}
    <span class="peek" aria-hidden="true">${film && html`<img loading="lazy" alt=""
      src=${frameURL(film, (start + end) / 2, 320)} />`}
      <span>${clock(start)} ${each.text && html`<q>${each.text}</q>`}</span></span></button>`;
}

// What a model is reading and writing; the checked answer takes its place.
function Draft({ model, onSeek }) {
  if (!model.passages.length && !model.draft) return null;
  return html`
    <section class="answer" aria-label="Draft">
      ${model.draft && html`<p class="answer-text muted">${model.draft}</p>
        <p class="note">${model.checking ? "Checking…" : "Draft, not checked yet"}</p>`}
      ${model.passages.length > 0 && html`<h3>Reading ${model.film}</h3>
        <ol class="hits">${model.passages.map((each) => html`<li>
          <button class="hit" onClick=${() => onSeek(each.start)}><span>
            <strong>${clock(each.start)}</strong> <q>${each.text}</q></span></button></li>`)}</ol>`}
    </section>`;
}

function Card({ each, film, name, number, chosen, against, onClick }) {
  const { start, end } = each.segment;
  const times = end - start >= 1 ? `${clock(start)} – ${clock(end)}` : clock(start, true);
  // a single frame is saved with a moment of what follows
  const stretch = Math.max(end, start + 2);
  return html`
    <li>
      <button class="card" aria-pressed=${chosen} onClick=${onClick} data-start=${start}>
        <span class="card-picture">${film && html`<img loading="lazy" alt=""
          src=${frameURL(film, (start + end) / 2, 320)} />`}</span>
        <span class="card-body">
          <span class="card-time"><span class="number">${number}</span> ${times}${" "}
            <span class="muted">${SOURCES[each.source] || each.source}</span></span>
          ${against && html`<span class="against">Another moment says otherwise</span>`}
          ${name && html`<span class="card-film">${name}</span>`}
          ${each.text && html`<q class="card-text">${each.text}</q>`}
        </span>
      </button>
      ${film && html`<a class="clip" download=${`${clock(start).replaceAll(":", ".")}.mp4`}
        href=${clipURL(film, start, stretch)}>Save clip</a>`}
    </li>`;
}

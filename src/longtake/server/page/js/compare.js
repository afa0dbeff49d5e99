// Runs side by side: methods on one question, with one timeline, agreement and cost; and the trace view,
// all steps of a run over the whole window, beside those of another if wanted.

import { html, useEffect, useMemo, useState } from "../vendor/preact-htm.js";
import { useWatched } from "./answer.js";
import { get, pastEvents, post } from "./api.js";
import { methodName } from "./ask.js";
import { count, duration, money, said, share } from "./format.js";
import { Loading, Meter, Pill, Trouble, useAsync, useModel } from "./parts.js";
import { ENDED, modelOf } from "./run.js";
import { Timeline, runRows } from "./timeline.js";
import { Rows, aligned, useFolded } from "./tree.js";

// milliseconds between looks at the runs
const POLL = 800;

export function ComparePage({ group, go }) {
  const [runs, setRuns] = useState(null);
  const [error, setError] = useState(null);
  const [models, setModels] = useState({});
  const [film, setFilm] = useState(null);

  useEffect(() => {
    let gone = false;
    let timer = 0;
    const poll = async () => {
      try {
        const list = (await get(`/runs?group=${group}&limit=64`)).runs.reverse();
        if (gone) return;
        setRuns(list);
        setError(null);
        if (list.length && list.every((each) => ENDED.includes(each.run.state))) return;
      } catch (problem) {
        if (!gone) setError(problem);
      }
      timer = setTimeout(poll, POLL);
    };
    poll();
    return () => { gone = true; clearTimeout(timer); };
  }, [group]);
  const id = runs && runs.length ? runs[0].run.ask.film : null;
  useEffect(() => { if (id) get(`/films/${id}`).then(setFilm).catch(setError); }, [id]);
  // browsers open six connections to a server, so events are fetched when a run has ended
  useEffect(() => {
    for (const { run } of runs || []) {
      if (ENDED.includes(run.state) && !models[run.id]) {
        models[run.id] = modelOf([]);
        pastEvents(run.id).then((events) =>
          setModels((now) => ({ ...now, [run.id]: modelOf(events) }))).catch(() => {});
      }
    }
  }, [runs]);

  const rows = useMemo(() => (runs || []).flatMap(({ run }) => {
    const model = models[run.id];
    if (!model || !model.events.length) return [];
    return runRows(model, `${run.id}-`).filter((row) => row.kind !== "heat")
      .map((row) => ({ ...row, label: `${methodName(run.ask.method)}: ${row.label}` }));
  }), [runs, models]);

  if (error && !runs) return html`<main class="page"><${Trouble} error=${error} /></main>`;
  if (!runs) return html`<main class="page"><${Loading} what="Opening the comparison…" /></main>`;
  if (!runs.length) return html`<main class="page"><div class="state"><h2>No such comparison</h2></div></main>`;
  const { ask } = runs[0].run;
  const votes = tally(runs);
  const running = runs.filter((each) => !ENDED.includes(each.run.state));
  return html`
    <main class="page compare">
      <div class="page-head"><h1>${ask.question}</h1><span class="spacer"></span>
        ${running.length > 0 && html`<button class="quiet" onClick=${() =>
          running.forEach((each) => post(`/runs/${each.run.id}/cancel`))}>Cancel all</button>`}</div>
      ${ask.options.length > 0 && html`<p class="muted">${ask.options.map((option, n) =>
        `${String.fromCharCode(65 + n)}. ${option}`).join(" · ")}</p>`}
      <p class="agreement" role="status">${running.length
        ? `${runs.length - running.length} of ${runs.length} methods have ended`
        : votes.text}</p>
      ${film && rows.length > 0 && html`<${Timeline} duration=${film.duration} time=${null} rows=${rows}
        onSeek=${(time) => go(`/film/${film.id}?t=${time.toFixed(2)}`)} />`}
      <div class="table-wrap" tabindex="0" role="region" aria-label="Methods compared">
        <table><thead><tr><th scope="col">Method</th><th scope="col">Answer</th>
          <th scope="col">Confidence</th><th scope="col">Citations</th><th scope="col">Frames</th>
          <th scope="col">Calls</th><th scope="col">Tokens</th><th scope="col">Cost</th>
          <th scope="col">Time</th></tr></thead>
        <tbody>${runs.map((each) => html`<${Line} each=${each} votes=${votes} />`)}</tbody>
        </table></div>
    </main>`;
}

function Line({ each, votes }) {
  const { run, position } = each;
  const used = run.usage;
  const text = run.answer && said(run.answer);
  return html`<tr data-state=${run.state}>
    <th scope="row"><a href=${`/run/${run.id}`}>${methodName(run.ask.method)}</a></th>
    <td class="said">${run.answer && !text ? html`<span class="muted">no answer</span>` : text ? html`<span class=${votes.best && text === votes.best ? "agrees" : ""}>
      ${text}</span>` : html`<${Pill} run=${run} /> ${position ? `place ${position}` : ""}
      ${run.error && run.state === "failed" && html`<span class="muted small"> ${run.error}</span>`}`}</td>
    <td>${run.answer && run.answer.confidence != null ? share(run.answer.confidence) : "–"}</td>
    <td>${run.answer ? run.answer.evidence.length : ""}</td>
    <td>${count(used.frames)}</td><td>${count(used.calls)}</td>
    <td>${count(used.tokens_in + used.tokens_out)}</td><td>${money(used.cost)}</td>
    <td>${duration(used.seconds)}</td></tr>`;
}

function tally(runs) {
  const counts = new Map();
  for (const { run } of runs) {
    const text = run.answer && said(run.answer);
    if (text) counts.set(text, (counts.get(text) || 0) + 1);
  }
  const [best, votes] = [...counts].sort((a, b) => b[1] - a[1])[0] || ["", 0];
  if (!votes) return { best: "", text: "No method gave an answer" };
  return { best: votes > 1 ? best : "", text: votes > 1
    ? `${votes} of ${runs.length} methods agree: ${best}` : "No two methods agree" };
}

export function TracePage({ run, other, go }) {
  const [others, setOthers] = useState([]);
  const record = useAsync(() => get(`/runs/${run}`).then((handle) => handle.run), [run]);
  useEffect(() => {
    if (!record.data) return;
    const { ask, kind } = record.data;
    const which = kind === "library" ? "kind=library" : `film=${ask.film}`;
    get(`/runs?${which}&limit=100`).then(({ runs }) => setOthers(runs.map((each) => each.run)
      .filter((each) => ["ask", "library"].includes(each.kind) && each.id !== run))).catch(() => {});
  }, [record.data]);
  useEffect(() => { document.title = "Trace · longtake"; }, []);
  if (record.error) return html`<main class="page"><${Trouble} error=${record.error} title="No such run" /></main>`;
  if (!record.data) return html`<main class="page"><${Loading} what="Opening the run…" /></main>`;
  return html`<main class="page traces">
    <div class="page-head"><h1>Trace</h1>
      <a href=${`/run/${run}`}>Back to the answer</a><span class="spacer"></span>
      <label class="beside">Compare with <select value=${other || ""} onChange=${(event) => go(
        event.target.value ? `/trace/${run}?with=${event.target.value}` : `/trace/${run}`, { replace: true })}>
        <option value="">nothing</option>
        ${others.map((each) => html`<option value=${each.id}>${methodName(each.ask.method)}:
          ${" "}${each.ask.question.slice(0, 60)}</option>`)}</select></label></div>
    <${Side} key=${`${run} ${other}`} run=${run} other=${other} />
  </main>`;
}

function Side({ run, other }) {
  const [one, two] = [useTraced(run), useTraced(other)];
  const beside = useMemo(() => new Set(), []);
  const [left, right] = useMemo(() => (other ? aligned(one.rows, two.rows) : [one.rows]),
    [one.rows, one.rows.length, two.rows, two.rows.length]);
  return html`<div class="side">
    <${Traced} run=${run} ...${one} rows=${left} beside=${beside} />
    ${other && html`<${Traced} run=${other} ...${two} rows=${right} beside=${beside} />`}
  </div>`;
}

function useTraced(run) {
  const model = useWatched(run);
  const version = useModel(model);
  return { model, ...useFolded(model, version) };
}

function Traced({ run, model, ...shown }) {
  if (!model || !model.status) return html`<section><${Loading} what="Opening the run…" /></section>`;
  const { status, answer } = model;
  const usage = model.ended && status.answer ? status.usage : model.usage;
  return html`<section aria-label=${`Trace of ${methodName(status.ask.method)}`}>
    <h2 class="asked">${model.question}</h2>
    <p class="run-head"><${Pill} run=${status} /> <strong>${methodName(status.ask.method)}</strong>${" "}
      ${answer && said(answer)}</p>
    <${Meter} usage=${usage} seconds=${usage.seconds} />
    <${Rows} model=${model} run=${run} live=${!model.ended} ...${shown} />
  </section>`;
}

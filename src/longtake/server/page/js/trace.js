// The trace view: all steps of a run over the whole window, beside those of another if wanted.

import { html, useEffect, useMemo, useState } from "../vendor/preact-htm.js";
import { get } from "./api.js";
import { said } from "./format.js";
import { Loading, Meter, Pill, Trouble, useAsync, useModel } from "./parts.js";
import { Rows, aligned, useFolded } from "./tree.js";
import { useWatched } from "./watched.js";

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
  const back = (event) => {
    event.preventDefault();
    go(`/run/${run}`);
  };
  return html`<main class="page traces">
    <div class="page-head"><h1>Trace</h1>
      <a href=${`/run/${run}`} onClick=${back}>Back to the answer</a><span class="spacer"></span>
      <label class="beside">Compare with <select value=${other || ""} onChange=${(event) => go(
        event.target.value ? `/trace/${run}?with=${event.target.value}` : `/trace/${run}`, { replace: true })}>
        <option value="">nothing</option>
        ${others.map((each) => html`<option value=${each.id}>${each.ask.method}:
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
  return html`<section aria-label=${`Trace of ${status.ask.method}`}>
    <h2 class="asked">${model.question}</h2>
    <p class="run-head"><${Pill} run=${status} /> <strong>${status.ask.method}</strong>${" "}
      ${answer && said(answer)}</p>
    <${Meter} usage=${usage} seconds=${usage.seconds} />
    <${Rows} model=${model} run=${run} onSeek=${() => {}} live=${!model.ended} ...${shown} />
  </section>`;
}

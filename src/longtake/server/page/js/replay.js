// Replay of any trace file, read in the browser: nothing is sent anywhere.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { Answer } from "./answer.js";
import { duration } from "./format.js";
import { Meter } from "./parts.js";
import { modelOf, readTrace } from "./run.js";
import { Timeline, runRows } from "./timeline.js";
import { Thumbs, Tree } from "./tree.js";

export function ReplayPage() {
  const [trace, setTrace] = useState(null);
  const [problem, setProblem] = useState("");
  const open = async (file) => {
    setProblem("");
    try {
      setTrace({ name: file.name, ...readTrace(await file.text()) });
    } catch (error) {
      setProblem(error.message);
    }
  };
  const onDrop = (event) => {
    event.preventDefault();
    if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
  };
  return html`
    <main class="page replay" onDrop=${onDrop} onDragOver=${(event) => event.preventDefault()}>
      <div class="page-head"><h1>Replay</h1><span class="muted">${trace ? trace.name : ""}</span>
        <span class="spacer"></span>
        <label class="button">Open a trace<input class="hidden" type="file" accept=".jsonl"
          onChange=${(event) => event.target.files[0] && open(event.target.files[0])} /></label></div>
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      ${trace ? html`<${Replayed} key=${trace.name} trace=${trace} />` : html`<div class="state">
        <h2>Open a trace file</h2><p>Drop a file that <code>longtake ask --trace</code> wrote, or
        one downloaded from a run. It is read here, in the browser.</p></div>`}
    </main>`;
}

function Replayed({ trace }) {
  const [at, setAt] = useState(trace.events.length);
  const [playing, setPlaying] = useState(false);
  const model = useMemo(() => modelOf(trace.events, at), [trace, at]);
  const place = useRef(at);
  place.current = at;
  useEffect(() => {
    if (!playing) return undefined;
    const timer = setInterval(() => {
      if (place.current >= trace.events.length) setPlaying(false);
      else setAt(place.current + 1);
    }, 120);
    return () => clearInterval(timer);
  }, [playing]);
  const length = useMemo(() => lengthOf(trace.events), [trace]);
  const last = trace.events[at - 1];
  const rows = runRows(model);
  const looks = model.looks.slice(-12);
  return html`
    <div class="scrub"><button onClick=${() => {
        if (at >= trace.events.length) setAt(0);
        setPlaying(!playing);
      }}>${playing ? "Pause" : "Play"}</button>
      <input type="range" min="0" max=${trace.events.length} value=${at} aria-label="Event"
        onInput=${(event) => setAt(Number(event.target.value))} />
      <span class="muted small">${at} of ${trace.events.length} ·
        ${" "}${duration(last ? last.time : 0)}</span></div>
    ${model.started && html`<p class="asked">${model.started.question}</p>`}
    <${Timeline} duration=${length} time=${looks.length ? looks[looks.length - 1].time : 0}
      rows=${rows} onSeek=${() => {}} />
    <div class="replay-grid">
      <div><${Tree} model=${model} version=${at} run=${null} pictures=${trace.pictures}
        live=${playing} /></div>
      <div><${Meter} usage=${model.usage} seconds=${last ? last.time : 0} />
        <${Answer} answer=${model.answer} film=${null} />
        ${looks.length > 0 && html`<h3>Latest frames</h3><${Thumbs} frames=${looks}
          pictures=${trace.pictures} />`}</div>
    </div>`;
}

// a trace does not say how long the film is, but nothing in it lies beyond the end
function lengthOf(events) {
  let end = 1;
  for (const event of events) {
    for (const seen of event.frames || []) end = Math.max(end, seen.time);
    for (const segment of event.segments || []) end = Math.max(end, segment.end);
  }
  return end;
}


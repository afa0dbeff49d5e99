// The film page: player, timeline, ask box, and the run that is being watched.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { frameURL, get, post, url } from "./api.js";
import { AskBox } from "./ask.js";
import { bytes, clock, sourcesOf } from "./format.js";
import { Bar, Hits, LAYERS, Loading, SearchBox, Trouble, useAsync, useModel, useRun } from "./parts.js";
import { Screen, usePlayer } from "./player.js";
import { Timeline, filmRows, runRows } from "./timeline.js";
import { Transcript } from "./transcript.js";
import { History, Watched, useCitations, useFollowUp, useWatched } from "./answer.js";

export function FilmPage({ film, run, cited, at, go, about }) {
  const facts = useAsync(() => get(`/films/${film}`), [film]);
  if (facts.error) return html`<main class="page"><${Trouble} error=${facts.error}
    again=${facts.again} title="This film cannot be opened" /></main>`;
  if (!facts.data) return html`<main class="page"><${Loading} what="Opening the film…" /></main>`;
  return html`<${Opened} key=${film} facts=${facts.data} again=${facts.again} run=${run}
    cited=${cited} at=${at} go=${go} about=${about} />`;
}

function Opened({ facts, again, run, cited, at, go, about }) {
  const film = facts.id;
  const video = useRef(null);
  const player = usePlayer(video, film, facts.duration);
  const [hits, setHits] = useState(null);
  const [found, setFound] = useState([]);
  const [given, setGiven] = useState(null);
  const [names, setNames] = useState(null);
  const known = useAsync(() => get(`/films/${film}/timeline`), [film, facts]);
  const timeline = names || known.data;
  const indexed = facts.layers.every((layer) => layer.done);
  const overview = useAsync(() => (indexed ? get(`/films/${film}/overview`) : Promise.resolve({})),
    [film, indexed]);
  const { chapters, summary, questions } = overview.data || {};
  const model = useWatched(run);
  const version = useModel(model);
  const { carried, setCarried, followUp } = useFollowUp(model);

  useEffect(() => { if (player && at != null) player.seek(at); }, [player]);
  useEffect(() => { document.title = `${facts.name} · longtake`; }, [facts.name]);
  // a run looks through the film first, so its layers may have changed
  useEffect(() => { if (model && model.ended && !indexed) again(); }, [model && model.ended]);

  const seek = (time, options) => player && player.seek(time, options);
  const cite = useCitations(model, { run, cited, ready: player != null, go }, (number, each, clicked) => {
    const { start, end } = each.segment;
    // at least long enough to be seen
    seek(start, clicked ? { play: true, until: Math.max(end, start + 1) } : {});
  });

  const rows = useMemo(() => [
    ...filmRows(timeline, chapters, hits, found),
    ...(model ? runRows(model) : []),
  ], [timeline, chapters, hits, found, model, version]);
  const ask = async (wanted) => {
    const handle = await post("/runs", wanted);
    go(`/run/${handle.run.id}`);
  };
  const compare = async (wanted, methods = []) => {
    const group = await post("/compare", { ask: wanted, methods });
    go(`/compare/${group.group}`);
  };
  const askPart = (start, end) => setGiven({ cursor: 0,
    text: ` between ${clock(start)} and ${clock(Math.ceil(end))}?` });
  const time = player ? player.time : 0;

  return html`
    <main class="page film">
      <div class="watch">
        <div class="page-head"><h1>${facts.name}</h1>
          <span class="muted small">${clock(facts.duration)} · ${facts.width}×${facts.height} ·
            ${" "}${bytes(facts.size)}</span></div>
        <${Screen} video=${video} player=${player} facts=${facts} />
        <${Timeline} duration=${facts.duration} time=${time} rows=${rows} onSeek=${seek} />
        <${Contents} chapters=${chapters} summary=${summary} time=${time} onSeek=${seek} />
        <${Search} film=${film} onHits=${setHits} hits=${hits} onSeek=${seek} indexed=${indexed} />
        <${Layers} facts=${facts} again=${again} />
      </div>
      <div class="work">
        <${AskBox} film=${film} about=${about} given=${given} carried=${carried}
          onCarried=${setCarried} onRun=${ask} onCompare=${compare} />
        ${!model && (questions || []).length > 0 && html`<ul class="suggested"
          aria-label="Suggested questions">${questions.map((text) => html`<li>
            <button onClick=${() => setGiven({ text, method: "lookup" })}>${text}</button></li>`)}</ul>`}
        ${model && html`<${Watched} model=${model} version=${version} run=${run} film=${film}
          cited=${cited} about=${about} onCite=${cite} onSeek=${seek} onFollowUp=${followUp}
          onLook=${() => setGiven({ text: model.question, method: "auto" })} />`}
        <${Transcript} film=${film} timeline=${timeline} player=${player} onSeek=${seek}
          evidence=${model && model.answer ? model.answer.evidence : NONE} onAsk=${askPart}
          onFound=${setFound} onNames=${setNames} />
        <${History} film=${film} current=${run} refresh=${model && model.ended} />
      </div>
    </main>`;
}

const NONE = [];

// what the film is about, before anybody asks
function Contents({ chapters = [], summary = [], time, onSeek }) {
  // a film without words has parts, but nothing to tell of them
  if (!summary.length) return null;
  const play = (start) => (event) => {
    event.preventDefault();
    onSeek(start, { play: true });
  };
  return html`<section class="contents" aria-label="Contents">
    <h2>Summary</h2>
    <p class="quoted">${summary.map((each) => html`<span>${each.text} <button class="cite"
      aria-label=${`Play from ${clock(each.start)}`} onClick=${play(each.start)}>${clock(each.start)}
      </button> </span>`)}</p>
    <h2>Chapters</h2>
    <ol class="chapters">${chapters.map((each) => html`<li aria-current=${time >= each.start
      && time < each.end ? "true" : undefined}><button class="quiet" onClick=${play(each.start)}>
      <span class="muted">${clock(each.start)}</span> ${each.title}</button></li>`)}</ol>
  </section>`;
}

function Search({ film, onHits, hits, onSeek, indexed }) {
  const look = (text) => get(`/films/${film}/search?q=${encodeURIComponent(text)}`);
  return html`
    <${SearchBox} label="Search this film" look=${look} onFound=${onHits}
      hint=${!indexed && "The film is being looked through first."} />
    ${hits && html`<${Hits} hits=${hits.hits} draw=${(hit) => html`<button class="hit"
      onClick=${() => onSeek(hit.time)}><img loading="lazy" alt="" src=${frameURL(film, hit.time, 160)} />
      <span><strong>${clock(hit.time)}</strong>
        <span class="muted small"> ${sourcesOf(Object.keys(hit.sources))}</span>
        ${hit.text && html`<br /><q>${hit.text}</q>`}</span></button>`} />
      ${hits.hits.length === 0 && html`<p class="empty">Nothing fits.</p>`}`}`;
}

function Layers({ facts, again }) {
  const [job, setJob] = useState(facts.indexing);
  const [problem, setProblem] = useState("");
  const done = facts.layers.every((layer) => layer.done);
  useRun(job && job.run.id, (status) => {
    setJob(null);
    if (status.error) setProblem(status.error);
    again();
  }, (progress) => setJob((now) => now && { ...now, progress }));
  const start = () => post(`/films/${facts.id}/index`).then(setJob)
    .catch((error) => setProblem(error.message));
  return html`
    <section class="layers" aria-label="Index">
      <div class="page-head"><h2>${done ? "Indexed" : "Index"}</h2><span class="spacer"></span>
        ${job ? html`<button class="quiet" onClick=${() => post(`/runs/${job.run.id}/cancel`)}>
          Stop</button>` : !done && html`<button onClick=${start}>Index now</button>`}
        <a class="button quiet" href=${url(`/films/${facts.id}/subtitles.srt`)} download>SRT</a>
        <a class="button quiet" href=${url(`/films/${facts.id}/subtitles.vtt`)} download>VTT</a>
        ${done && html`<a class="button quiet" download
          href=${url(`/films/${facts.id}/chapters.vtt`)}>Chapters</a>`}</div>
      ${(!done || job) && html`<ul>${facts.layers.map((layer) => {
        const share = job && job.progress[layer.name];
        return html`<li><span class=${layer.done ? "mark good" : "mark"} aria-hidden="true">
          ${layer.done ? "✓" : "○"}</span> <span>${LAYERS[layer.name]}</span>
          <span class="muted small">${layer.done ? "known" : "not known yet"}</span>
          ${share != null && share < 1 && html`<${Bar} value=${share} label=${LAYERS[layer.name]} />`}</li>`;
      })}</ul>`}
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    </section>`;
}

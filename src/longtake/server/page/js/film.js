// The film page: player, timeline, ask box, and the run that is being watched.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { frameURL, get, post, url } from "./api.js";
import { AskBox } from "./ask.js";
import { bytes, clock } from "./format.js";
import { Bar, Loading, Trouble, useAsync, useModel } from "./parts.js";
import { RunModel } from "./run.js";
import { Screen, usePlayer } from "./screen.js";
import { Timeline } from "./timeline.js";
import { filmRows, runRows } from "./rows.js";
import { History, Watched, followUpOf, useWatched } from "./watched.js";

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
  const [carried, setCarried] = useState("");
  const timeline = useAsync(() => get(`/films/${film}/timeline`), [film, facts]);
  const indexed = facts.layers.find((layer) => layer.name === "frames").done;
  const blocks = useAsync(() => (indexed ? get(`/films/${film}/blocks`) : Promise.resolve([])),
    [film, indexed]);
  const model = useWatched(run);
  const version = useModel(model);

  useEffect(() => { if (player && at != null) player.seek(at); }, [player]);
  useEffect(() => { document.title = `${facts.name} · longtake`; }, [facts.name]);
  // a run looks through the film first, so its layers may have changed
  useEffect(() => { if (model && model.ended && !indexed) again(); }, [version]);

  const seek = (time, options) => player && player.seek(time, options);
  const cite = (number, each) => {
    const { start, end } = each.segment;
    seek(start, { play: end - start >= 0.5, until: end - start >= 0.5 ? end : null });
    go(`/run/${run}?c=${number}`, { replace: true });
  };
  // a link to a citation shows it once the answer is there
  const shownCitation = useRef(null);
  useEffect(() => {
    const each = model && model.answer && cited != null ? model.answer.evidence[cited] : null;
    if (!each || !player || shownCitation.current === `${run}/${cited}`) return;
    shownCitation.current = `${run}/${cited}`;
    player.seek(each.segment.start);
  }, [version, cited, player]);

  const rows = useMemo(() => [
    ...filmRows(timeline.data, blocks.data, hits),
    ...(model ? runRows(model) : []),
  ], [timeline.data, blocks.data, hits, model, version]);
  const ask = async (wanted) => {
    const handle = await post("/runs", wanted);
    go(`/run/${handle.run.id}`);
  };
  const compare = async (wanted) => {
    const group = await post("/compare", { ask: wanted });
    go(`/compare/${group.group}`);
  };
  const followUp = () => {
    setCarried(followUpOf(model));
    document.getElementById("question").focus();
  };
  const time = player ? player.time : 0;

  return html`
    <main class="page film">
      <div class="watch">
        <div class="page-head"><h1>${facts.name}</h1>
          <span class="muted small">${clock(facts.duration)} · ${facts.width}×${facts.height} ·
            ${" "}${bytes(facts.size)}</span></div>
        <${Screen} video=${video} player=${player} facts=${facts} />
        <${Timeline} duration=${facts.duration} time=${time} rows=${rows} onSeek=${seek} />
        <${Search} film=${film} onHits=${setHits} hits=${hits} onSeek=${seek} indexed=${indexed} />
        <${Layers} facts=${facts} again=${again} />
      </div>
      <div class="work">
        <${AskBox} film=${film} about=${about} carried=${carried} onCarried=${setCarried}
          onRun=${ask} onCompare=${compare} />
        ${model ? html`<${Watched} model=${model} version=${version} run=${run} film=${film}
          cited=${cited} onCite=${cite} onSeek=${seek} onFollowUp=${followUp} />`
          : html`<${History} film=${film} go=${go} />`}
        ${model && html`<${History} film=${film} go=${go} current=${run}
          refresh=${model.ended} />`}
      </div>
    </main>`;
}

function Search({ film, onHits, hits, onSeek, indexed }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    if (!text.trim()) return onHits(null);
    setBusy(true);
    setProblem("");
    try {
      onHits(await get(`/films/${film}/search?q=${encodeURIComponent(text)}`));
    } catch (error) {
      setProblem(error.message);
    }
    setBusy(false);
    return undefined;
  };
  return html`
    <form class="search" role="search" onSubmit=${submit}>
      <label class="hidden" for="search">Search in this film</label>
      <input id="search" type="search" data-search placeholder="Search this film  /" value=${text}
        onInput=${(event) => setText(event.target.value)} />
      <button disabled=${busy}>${busy ? "Searching…" : "Search"}</button>
    </form>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${!indexed && busy && html`<p class="muted small">The film is being looked through first.</p>`}
    ${hits && html`<ol class="hits" aria-label="Search results">
      ${hits.hits.map((hit) => html`<li><button class="hit" onClick=${() => onSeek(hit.time)}>
        <img loading="lazy" alt="" src=${frameURL(film, hit.time, 160)} />
        <span><strong>${clock(hit.time)}</strong>
          <span class="muted small"> ${Object.keys(hit.sources).join(", ")}${hit.sure ? "" : ", unsure"}</span>
          ${hit.text && html`<br /><q>${hit.text}</q>`}</span></button></li>`)}
      ${hits.hits.length === 0 && html`<li class="empty">Nothing fits.</li>`}
    </ol>`}`;
}

function Layers({ facts, again }) {
  const [job, setJob] = useState(facts.indexing);
  const [problem, setProblem] = useState("");
  const done = facts.layers.every((layer) => layer.done);
  useEffect(() => {
    if (!job || job.run.state === "done") return undefined;
    const model = new RunModel();
    const leave = model.watch(job.run.id);
    const stop = model.subscribe(() => {
      setJob((now) => ({ ...now, progress: (model.status && model.status.progress) || {} }));
      if (model.ended) {
        leave();
        setJob(null);
        if (model.status.error) setProblem(model.status.error);
        again();
      }
    });
    return () => { leave(); stop(); };
  }, [job && job.run.id]);
  const start = () => post(`/films/${facts.id}/index`).then(setJob)
    .catch((error) => setProblem(error.message));
  return html`
    <section class="layers" aria-label="Index">
      <div class="page-head"><h2>Index</h2><span class="spacer"></span>
        ${job ? html`<button class="quiet" onClick=${() => post(`/runs/${job.run.id}/cancel`)}>
          Stop</button>` : !done && html`<button onClick=${start}>Index now</button>`}
        <a class="button quiet" href=${url(`/films/${facts.id}/subtitles.srt`)} download>SRT</a>
        <a class="button quiet" href=${url(`/films/${facts.id}/subtitles.vtt`)} download>VTT</a>
        ${facts.layers[1].done && html`<a class="button quiet" download
          href=${url(`/films/${facts.id}/chapters.vtt`)}>Chapters</a>`}</div>
      <ul>${facts.layers.map((layer) => {
        const share = job && job.progress[layer.name];
        return html`<li><span class=${layer.done ? "mark good" : "mark"} aria-hidden="true">
          ${layer.done ? "✓" : "○"}</span> <span>${layer.name}</span>
          <span class="muted small">${layer.what}</span>
          ${share != null && share < 1 && html`<${Bar} value=${share} label=${layer.name} />`}</li>`;
      })}</ul>
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    </section>`;
}

// The film page: player, timeline, ask box, and the run that is being watched.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { frameURL, get, post, url } from "./api.js";
import { Answer } from "./answer.js";
import { AskBox } from "./ask.js";
import { ago, bytes, clock } from "./format.js";
import { Bar, Loading, Meter, STATES, Trouble, useAsync, useModel } from "./parts.js";
import { Player } from "./player.js";
import { RunModel } from "./run.js";
import { Timeline } from "./timeline.js";
import { filmRows, runRows } from "./rows.js";
import { Tree } from "./tree.js";

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
  const [player, setPlayer] = useState(null);
  const [, tick] = useState(0);
  const [hits, setHits] = useState(null);
  const [carried, setCarried] = useState("");
  const timeline = useAsync(() => get(`/films/${film}/timeline`), [film, facts]);
  const indexed = facts.layers.find((layer) => layer.name === "frames").done;
  const blocks = useAsync(() => (indexed ? get(`/films/${film}/blocks`) : Promise.resolve([])),
    [film, indexed]);
  const model = useWatched(run);
  const version = useModel(model);

  useEffect(() => {
    const opened = new Player(video.current, film, facts.duration);
    opened.subscribe(() => tick((n) => n + 1));
    setPlayer(opened);
    window.longtakePlayer = opened;
    if (at != null) opened.seek(at);
    return () => opened.close();
  }, [film]);
  useEffect(() => { document.title = `${facts.name} · longtake`; }, [facts.name]);
  useKeys(player);
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
    const { question } = model.started || {};
    const said = model.answer.choice
      ? `${model.answer.choice}. ${model.answer.text}` : model.answer.text;
    setCarried(`${carried ? `${carried}\n` : ""}Q: ${plainQuestion(question)}\nA: ${said}`);
    document.getElementById("question").focus();
  };
  const time = player ? player.time : 0;

  return html`
    <main class="page film">
      <div class="watch">
        <div class="page-head"><h1>${facts.name}</h1>
          <span class="muted small">${clock(facts.duration)} · ${facts.width}×${facts.height} ·
            ${" "}${bytes(facts.size)}</span></div>
        <div class="screen" style=${{ aspectRatio: `${facts.width} / ${facts.height}` }}>
          <video ref=${video} playsinline controls poster=${frameURL(film, facts.duration * 0.15, 960)}
            aria-label=${`Player: ${facts.name}`}></video>
          ${player && player.error && html`<p class="screen-note">${player.error}</p>`}
        </div>
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

const plainQuestion = (text) => String(text || "").split("\n(Earlier in this conversation:")[0];

function useWatched(run) {
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

function useKeys(player) {
  useEffect(() => {
    const onKey = (event) => {
      const typing = event.target.closest("input, textarea, select, [role=tree], [role=slider]");
      if (!player || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      // a focused button keeps its own space bar
      if (event.key === " " && !event.target.closest("button, a, video, summary")) player.toggle();
      else if (event.key === "ArrowLeft") player.seek(player.time - (event.shiftKey ? 0.1 : 5));
      else if (event.key === "ArrowRight") player.seek(player.time + (event.shiftKey ? 0.1 : 5));
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [player]);
}

function Watched({ model, version, run, film, cited, onCite, onSeek, onFollowUp }) {
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
  const budget = (model.started && model.started.budget) || {};
  const indexing = live && !model.started && Object.entries(status.progress || {});
  return html`
    <section class="run" aria-label="Run" data-state=${status.state} data-version=${version}>
      ${model.started && html`<h2 class="asked">${plainQuestion(model.started.question)}</h2>`}
      <div class="run-head" role="status">
        <span class=${`pill ${status.state}`}>${STATES[status.state]}</span>
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
      <${Answer} answer=${model.answer} film=${film} run=${model.ended ? run : null} cited=${cited}
        onCite=${onCite} onFollowUp=${onFollowUp} />
      <${Meter} usage=${model.usage} budget=${budget} seconds=${seconds} />
      <${Tree} model=${model} version=${version} run=${run} onSeek=${onSeek} live=${live} />
    </section>`;
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

const FEW = 6;

function History({ film, go, current, refresh }) {
  const [all, setAll] = useState(false);
  const runs = useAsync(() => get(`/runs?film=${film}&limit=100`), [film, current, refresh]);
  if (!runs.data) return null;
  const entries = threads(runs.data.runs.map((each) => each.run), current);
  if (!entries.length) {
    return current ? null : html`<div class="state quiet-state"><h2>Ask about this film</h2>
      <p>You will see where the method looks, what it believes in each round and what it costs,
        and every answer cites moments that you can play.</p></div>`;
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
    if (run.kind !== "ask" || run.id === current) continue;
    const { question } = run.ask;
    const said = run.answer && (run.answer.choice ? `${run.answer.choice}. ` : "") + run.answer.text;
    if (!run.group) {
      entries.push({ href: `/run/${run.id}`, question, created: run.created,
        text: `${said || STATES[run.state]} · ${run.ask.method}` });
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

// The library: search and ask all films; a moment plays where it was found.

import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { frameURL, get, post } from "./api.js";
import { AskBox } from "./ask.js";
import { clock, plural, sourcesOf } from "./format.js";
import { Folders, Hits, Loading, SearchBox, Trouble, useAsync, useModel } from "./parts.js";
import { Screen, usePlayer } from "./player.js";
import { History, Watched, useCitations, useFollowUp, useWatched } from "./answer.js";

export function LibraryPage({ run, cited, query, go, about }) {
  const [playing, setPlaying] = useState(null);
  const [where, setWhere] = useState("");
  const model = useWatched(run);
  const version = useModel(model);
  const { carried, setCarried, followUp } = useFollowUp(model);
  useEffect(() => { document.title = "Library · longtake"; }, []);

  const play = (film, start, end) => setPlaying({ film, start, until: end - start >= 0.5 ? end : null });
  const sources = (model && model.ended && model.status.sources) || [];
  const cite = useCitations(model, { run, cited, ready: sources[cited], go }, (number, each, clicked) => {
    if (clicked || !playing) play(sources[number].film, each.segment.start, each.segment.end);
  });
  const ask = async ({ film, ...wanted }) => {
    const handle = await post("/library/ask", { ...wanted, where });
    go(`/run/${handle.run.id}`);
  };
  // events name the film that is being read
  const seek = async (time) => {
    const films = await get("/library/films");
    const film = films.find((each) => each.name === model.film);
    if (film) play(film.id, time, time);
  };

  return html`
    <main class="page film across">
      <div class="watch">
        <div class="page-head"><h1>Library</h1></div>
        <${Search} query=${query} run=${run} where=${where} onWhere=${setWhere} onPlay=${play} go=${go}>
          ${playing && html`<${Playing} key=${playing.film} moment=${playing} />`}
        </${Search}>
        <${Folders} />
      </div>
      <div class="work">
        <${AskBox} about=${about} carried=${carried} onCarried=${setCarried} onRun=${ask} />
        ${model && html`<${Watched} model=${model} version=${version} run=${run} cited=${cited}
          about=${about} onCite=${cite} onSeek=${seek} onFollowUp=${followUp} />`}
        <${History} current=${run} refresh=${model && model.ended} />
      </div>
    </main>`;
}

function Search({ query, run, where, onWhere, onPlay, go, children }) {
  const [found, setFound] = useState(null);
  const look = (text) => {
    const wanted = `q=${encodeURIComponent(text)}`;
    // beside a run, the address stays that of the run
    if (!run) go(`/library?${wanted}`, { replace: true });
    const filter = where.trim() ? `&where=${encodeURIComponent(where)}` : "";
    return get(`/library/search?${wanted}${filter}`);
  };
  return html`
    <${SearchBox} label="Search all films" query=${query || ""} look=${look} onFound=${setFound}>
      <label class="hidden" for="where">Only films for which this holds</label>
      <input id="where" class="where" placeholder="Filter: year>=2025" value=${where}
        spellcheck="false" onInput=${(event) => onWhere(event.target.value)} />
    </${SearchBox}>
    ${children}
    ${found && html`<section class="found" aria-label="Search results">
      <p class="muted small" role="status">${plural(found.searched, "film")} searched</p>
      ${found.films.length === 0 && html`<p class="empty">Nothing fits.</p>`}
      ${[...found.films].sort((a, b) => isSure(b) - isSure(a)).map(({ film, moments }) => html`<${Group}
        key=${film.id} film=${film} moments=${moments} folded=${found.films.some(isSure)}
        onPlay=${onPlay} />`)}</section>`}`;
}

const isSure = ({ moments }) => moments.some((each) => each.sure);

function Group({ film, moments, folded, onPlay }) {
  const facts = [clock(film.duration), film.date, film.place, ...film.tags.map((tag) => `#${tag}`)];
  return html`
    <h2><a href=${`/film/${film.id}`}>${film.name}</a>
      <span class="muted small"> ${facts.filter(Boolean).join(" · ")}</span></h2>
    <${Hits} hits=${moments} folded=${folded} draw=${(each) => html`<button class="hit" data-time=${each.time}
        onClick=${() => onPlay(film.id, each.time, Math.max(each.segment.end, each.time + 2))}>
        <img loading="lazy" alt="" src=${frameURL(film.id, each.time, 160)} />
        <span><strong>${clock(each.time)}</strong>
          <span class="muted small"> ${sourcesOf(each.sources)}</span>
          ${each.text && html`<br />${each.described ? `perhaps ${each.text}`
            : html`<q>${each.text}</q>`}`}</span></button>`} />`;
}

function Playing({ moment }) {
  const facts = useAsync(() => get(`/films/${moment.film}`), [moment.film]);
  if (facts.error) return html`<${Trouble} error=${facts.error} title="This film cannot be opened" />`;
  if (!facts.data) return html`<${Loading} what="Opening the film…" />`;
  return html`<${Played} facts=${facts.data} moment=${moment} />`;
}

function Played({ facts, moment }) {
  const video = useRef(null);
  const player = usePlayer(video, facts.id, facts.duration);
  useEffect(() => {
    if (!player) return;
    player.seek(moment.start, { play: true, until: moment.until });
    video.current.scrollIntoView({ block: "nearest" });
  }, [player, moment]);
  const address = `/film/${facts.id}?t=${moment.start.toFixed(2)}`;
  return html`<section class="playing" aria-label="Player">
    <${Screen} video=${video} player=${player} facts=${facts} />
    <p><strong>${facts.name}</strong> <span class="muted">${clock(player ? player.time : moment.start)}
      ${" "}of ${clock(facts.duration)}</span> <a href=${address}>Open the film</a></p>
  </section>`;
}

// Films: each with its picture, length and state.

import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { frameURL, get, post, upload } from "./api.js";
import { bytes, clock, duration, plural } from "./format.js";
import { Bar, Trouble, useAsync } from "./parts.js";

const FILM = /\.(mp4|m4v|mov|mkv|webm|avi|mpe?g|ts|wmv|flv|mp3|wav|m4a|ogg)$/i;

export function Films({ go }) {
  const films = useAsync(() => get("/films"), []);
  const [filter, setFilter] = useState("");
  const [arriving, setArriving] = useState(null);
  const [over, setOver] = useState(false);
  const [doing, setDoing] = useState(null);
  const listed = useRef(0);
  const onState = (state) => {
    setDoing(state.doing);
    // a film that appeared in a folder appears here
    if (listed.current && listed.current !== state.listed) films.again();
    listed.current = state.listed;
  };
  const picker = useRef(null);
  const folder = useRef(null);

  const send = async (files) => {
    for (const file of files) {
      const place = files.length > 1 ? ` (${files.indexOf(file) + 1} of ${files.length})` : "";
      setArriving({ name: file.name + place, share: 0 });
      try {
        const film = await upload(file, (share) => setArriving({ name: file.name + place, share }));
        setArriving(null);
        films.again();
        if (files.length === 1) go(`/film/${film.id}`);
      } catch (error) {
        setArriving({ name: file.name, error: error.message });
        return;
      }
    }
  };
  const onDrop = (event) => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer.files.length) send([...event.dataTransfer.files]);
  };
  if (films.error) return html`<main class="page"><${Trouble} error=${films.error}
    again=${films.again} title="The films cannot be listed" /></main>`;
  const list = (films.data || []).filter((film) =>
    `${film.folder}/${film.name}`.toLowerCase().includes(filter.toLowerCase()));

  return html`
    <main class=${`page library ${over ? "over" : ""}`} onDrop=${onDrop}
      onDragOver=${(event) => { event.preventDefault(); setOver(true); }}
      onDragLeave=${() => setOver(false)}>
      <div class="page-head">
        <h1>Films</h1>
        <span class="spacer"></span>
        <label class="hidden" for="filter">Filter films</label>
        <input id="filter" type="search" placeholder="Filter" value=${filter} data-search
          onInput=${(event) => setFilter(event.target.value)} />
        <button onClick=${() => picker.current.click()}>Add a film</button>
        <button onClick=${() => folder.current.click()}>Add a folder</button>
        <input ref=${folder} class="hidden" type="file" webkitdirectory multiple tabindex="-1"
          aria-label="Choose a folder to add" onChange=${(event) => send([...event.target.files]
            .filter((file) => /^(video|audio)\//.test(file.type) || FILM.test(file.name)))} />
        <input ref=${picker} class="hidden" type="file" accept="video/*,audio/*,.mkv,.ts,.avi" multiple
          aria-label="Choose films to add" tabindex="-1"
          onChange=${(event) => send([...event.target.files])} />
      </div>
      ${arriving && html`<div class="arriving" role="status">
        ${arriving.error ? html`<p class="problem">${arriving.name}: ${arriving.error}</p>`
          : html`<p>${arriving.name}: ${Math.round(arriving.share * 100)} %</p>
            <${Bar} value=${arriving.share} label="Upload" />`}
      </div>`}
      ${films.loading && !films.data ? html`<ul class="films" aria-busy="true">
        ${[1, 2, 3, 4].map(() => html`<li class="film-card ghost"><div class="film-picture"></div>
          <div class="film-text"></div></li>`)}</ul>`
        : list.length === 0 ? html`<${Empty} any=${(films.data || []).length > 0} />`
        : html`<ul class="films">${list.map((film) => html`
          <${FilmCard} key=${film.id} film=${film} go=${go} doing=${doing && doing.film === stem(film.name)
            ? doing : null} />`)}</ul>`}
      ${(films.data || []).length > 0 && html`<${Folders} onState=${onState} />`}
    </main>`;
}

function Empty({ any }) {
  if (any) return html`<div class="state"><h2>No film of that name</h2></div>`;
  return html`<div class="state"><h2>No films yet</h2>
    <p>Drop a film here, or start the server with the folder they lie in:</p>
    <pre>longtake serve --films ~/Videos</pre></div>`;
}

const stem = (name) => name.replace(/\.[^.]*$/, "");

function FilmCard({ film, go, doing }) {
  const element = useRef(null);
  const [facts, setFacts] = useState(null);
  const [problem, setProblem] = useState("");
  // a film is opened when its card comes into view: a folder may hold thousands
  useEffect(() => {
    const observer = new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting) return;
      observer.disconnect();
      get(`/films/${film.id}`).then(setFacts).catch((error) => setProblem(error.message));
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [film.id, doing == null]);
  const open = (event) => {
    event.preventDefault();
    go(`/film/${film.id}`);
  };
  const done = facts ? facts.layers.filter((layer) => layer.done).length : 0;
  return html`
    <li class="film-card" ref=${element}>
      <a href=${`/film/${film.id}`} onClick=${open}>
        <div class="film-picture">
          ${facts && html`<img alt="" loading="lazy"
            src=${frameURL(film.id, facts.duration / 2, 480)} />`}
          ${facts && html`<span class="badge">${clock(facts.duration)}</span>`}
        </div>
        <div class="film-text">
          <h2>${film.name}</h2>
          <p class="muted small">${problem || html`${film.folder && `${film.folder} · `}
            ${bytes(film.size)}${facts && html` · <${Indexed} done=${done}
            all=${facts.layers.length} />`}`}</p>
          ${doing && html`<${Bar} value=${doing.share} label=${`Indexing ${film.name}`} />`}
        </div>
      </a>
    </li>`;
}

const Indexed = ({ done, all }) => html`<span class=${done === all ? "good" : ""}>
  ${done === all ? "indexed" : done ? "partly indexed" : "not indexed"}</span>`;

const OFTEN = 1000; // milliseconds between looks at what is being indexed
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
  const { doing, failed } = state;
  return html`
    <section class="layers folders" aria-label="Folders" data-busy=${state.busy}>
      <div class="page-head"><h2>Folders</h2>
        <span class="muted small">${state.folders.join(", ")}</span><span class="spacer"></span>
        ${state.watching ? html`<button class="quiet" onClick=${() => watch(false)}>Stop watching</button>`
          : html`<button onClick=${() => watch(true)}>Watch these folders</button>`}</div>
      <p role="status">${state.films} of ${plural(state.listed, "film")} can be searched and asked
        ${state.films > 0 && html`<span class="muted"> · ${clock(state.seconds)}</span>`}</p>
      ${doing ? html`<p class="muted small">${doing.film}: ${doing.part}, ${doing.job} of ${doing.jobs}
          ${doing.left != null && ` · about ${duration(doing.left)} left`}</p>
          <${Bar} value=${(doing.job - 1 + doing.share) / doing.jobs} label="Indexing" />`
        : html`<p class="muted small">${IDLE[state.busy ? "busy" : state.watching]}</p>`}
      ${Object.entries(failed).map(([name, why]) => html`<p class="problem">${name}: ${why}</p>`)}
      ${(problem || state.problem) && html`<p class="problem" role="alert">${problem || state.problem}</p>`}
    </section>`;
}

// Films: each with its picture, length and state.

import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { frameURL, get, upload } from "./api.js";
import { bytes, clock } from "./format.js";
import { Bar, Trouble, useAsync } from "./parts.js";

export function Films({ go }) {
  const films = useAsync(() => get("/films"), []);
  const [filter, setFilter] = useState("");
  const [arriving, setArriving] = useState(null);
  const [over, setOver] = useState(false);
  const picker = useRef(null);

  const send = async (files) => {
    for (const file of files) {
      setArriving({ name: file.name, share: 0 });
      try {
        const film = await upload(file, (share) => setArriving({ name: file.name, share }));
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
          <${FilmCard} key=${film.id} film=${film} go=${go} />`)}</ul>`}
    </main>`;
}

function Empty({ any }) {
  if (any) return html`<div class="state"><h2>No film of that name</h2></div>`;
  return html`<div class="state"><h2>No films yet</h2>
    <p>Drop a film here, or start the server with the folder they lie in:</p>
    <pre>longtake serve --films ~/Videos</pre></div>`;
}

function FilmCard({ film, go }) {
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
  }, [film.id]);
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
            src=${frameURL(film.id, facts.duration * 0.15, 480)} />`}
          ${facts && html`<span class="badge">${clock(facts.duration)}</span>`}
        </div>
        <div class="film-text">
          <h2>${film.name}</h2>
          <p class="muted small">${problem || html`${film.folder && `${film.folder} · `}
            ${bytes(film.size)}${facts && html` · <${Indexed} done=${done}
            all=${facts.layers.length} />`}`}</p>
        </div>
      </a>
    </li>`;
}

const Indexed = ({ done, all }) => html`<span class=${done === all ? "good" : ""}>
  ${done === all ? "indexed" : done ? `${done} of ${all} layers` : "not indexed"}</span>`;

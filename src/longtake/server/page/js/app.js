// The page: addresses, the bar at the top, what is shown when something is missing, and the list of
// films, each with its picture, length and state.

import { html, render, useEffect, useErrorBoundary, useRef, useState } from "../vendor/preact-htm.js";
import { frameURL, get, signIn, upload } from "./api.js";
import { bytes, clock } from "./format.js";
import { Bar, Dialog, Folders, LAYERS, Loading, Trouble, progressOf, useAsync,
  useListener, useRun, useSubmit } from "./parts.js";

// loaded when they are shown: the list of films must not wait for them
const later = (load, name) => (props) => {
  const part = useAsync(load, []);
  if (part.error) return html`<main class="page"><${Trouble} error=${part.error} /></main>`;
  return part.data ? html`<${part.data[name]} ...${props} />` : null;
};
const LOAD = { compare: () => import("./compare.js"), film: () => import("./film.js"),
  library: () => import("./library.js"), replay: () => import("./replay.js") };
const ComparePage = later(LOAD.compare, "ComparePage");
const FilmPage = later(LOAD.film, "FilmPage");
const LibraryPage = later(LOAD.library, "LibraryPage");
const ReplayPage = later(LOAD.replay, "ReplayPage");
const TracePage = later(LOAD.compare, "TracePage");

const KEYS = [["space", "play or pause"], ["← →", "five seconds back or forth (shift: a frame)"],
  ["/", "search"], ["a", "ask"], ["+ −", "zoom the timeline, when it has the focus"],
  ["↑ ↓", "move through the steps of a run"], ["Esc", "leave a field"], ["?", "this list"]];

function place() {
  const [, view = "", id = ""] = window.location.pathname.split("/");
  return { view, id: decodeURIComponent(id), query: new URLSearchParams(window.location.search) };
}

function useAddress() {
  const [now, setNow] = useState(place());
  useListener(["popstate"], () => setNow(place()));
  // links within the page; others are for the browser, and so is a click with a key
  useListener(["click"], (event) => {
    const link = event.target.closest("a[href^='/']:not([download])");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(link.getAttribute("href"));
  });
  const go = (address, { replace = false } = {}) => {
    window.history[replace ? "replaceState" : "pushState"](null, "", address);
    setNow(place());
    if (!replace) window.scrollTo(0, 0);
  };
  return [now, go];
}

function App() {
  const [now, go] = useAddress();
  const [locked, setLocked] = useState(false);
  const [help, setHelp] = useState(false);
  const [offline, setOffline] = useState(!navigator.onLine);
  const about = useAsync(() => get("/about"), [locked]);
  const [failure, reset] = useErrorBoundary();

  useListener(["locked"], () => setLocked(true));
  useListener(["online", "offline"], () => setOffline(!navigator.onLine));
  useListener(["keydown"], (event) => {
    const field = event.target.closest("input, textarea, select");
    if (event.key === "Escape" && field) field.blur();
    if (field || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") focus(event, "[data-search]");
    else if (event.key === "a") focus(event, "#question");
    else if (event.key === "?") setHelp(true);
  });

  let view;
  if (locked) view = html`<${Locked} onOpen=${() => setLocked(false)} />`;
  else if (failure) view = html`<main class="page"><${Trouble} error=${failure} again=${reset} /></main>`;
  else if (about.error) {
    view = html`<main class="page"><${Trouble} error=${about.error} again=${about.again} /></main>`;
  } else if (!about.data && now.view) {
    // the list of films does not wait for it
    view = html`<main class="page"><${Loading} what="Opening…" /></main>`;
  } else view = html`<${View} now=${now} go=${go} about=${about.data && { ...about.data, again: about.again }} />`;

  return html`
    <a class="skip" href="#main">Skip to content</a>
    <header class="top">
      <a class="brand" href="/">
        <img src="/assets/icon.svg" alt="" width="22" height="22" /> <span>longtake</span></a>
      <nav aria-label="Main">${[["", "Films"], ["library", "Library"], ["replay", "Replay"]].map(
        ([view, name]) => html`<a href=${`/${view}`}
          aria-current=${now.view === view ? "page" : undefined}>${name}</a>`)}</nav>
      <span class="spacer"></span>
      <${Theme} />
      <button class="quiet icon" aria-label="Keyboard shortcuts" onClick=${() => setHelp(true)}>?</button>
    </header>
    ${offline && html`<p class="banner" role="status">This computer is offline. Films and earlier
      answers of a server on it still work.</p>`}
    <div id="main">${view}</div>
    ${help && html`<${Dialog} title="Keyboard" onClose=${() => setHelp(false)}>
      <dl class="keys">${KEYS.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt>
        <dd>${what}</dd></div>`)}</dl></${Dialog}>`}`;
}

function focus(event, selector) {
  const field = document.querySelector(selector);
  if (!field) return;
  event.preventDefault();
  field.focus();
}

function View({ now, go, about }) {
  const { view, id, query } = now;
  const number = (name) => (query.has(name) ? Number(query.get(name)) : null);
  if (view === "film" || view === "run" || view === "library") {
    const film = view === "film" ? id : view === "library" ? ALL : null;
    return html`<${Watch} film=${film} run=${view === "run" ? id : null} at=${number("t")}
      cited=${number("c")} query=${query.get("q")} go=${go} about=${about} />`;
  }
  if (view === "compare") return html`<${ComparePage} key=${id} group=${id} go=${go} />`;
  if (view === "trace") return html`<${TracePage} run=${id} other=${query.get("with")} go=${go} />`;
  if (view === "replay") return html`<${ReplayPage} />`;
  return html`<${Films} go=${go} />`;
}

// the film of a run, or all films; the page stays when another of its runs is opened
function Watch({ film, run, at, cited, query, go, about }) {
  const [known, setKnown] = useState(film);
  const [error, setError] = useState(null);
  useEffect(() => {
    setError(null);
    if (film) setKnown(film);
    else {
      get(`/runs/${run}`).then(({ run: { kind, ask } }) => setKnown(kind === "library" ? ALL : ask.film))
        .catch(setError);
    }
  }, [film, run]);
  if (error) return html`<main class="page"><${Trouble} error=${error} title="No such run" /></main>`;
  const shown = film || known;
  if (!shown) return html`<main class="page"><${Loading} what="Opening the run…" /></main>`;
  if (shown === ALL) {
    return html`<${LibraryPage} run=${run} cited=${cited} query=${query} go=${go} about=${about} />`;
  }
  return html`<${FilmPage} film=${shown} run=${run} at=${at} cited=${cited} go=${go}
    about=${about} />`;
}

const ALL = "all films";
// what is drawn on canvas keeps its colours until it is drawn again
const system = window.matchMedia("(prefers-color-scheme: dark)");
system.onchange = () => window.dispatchEvent(new Event("theme"));

function Theme() {
  const root = document.documentElement;
  const [theme, setTheme] = useState(localStorage.getItem("longtake-theme"));
  useEffect(() => {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    localStorage.setItem("longtake-theme", theme || "");
    window.dispatchEvent(new Event("theme"));
  }, [theme]);
  const dark = theme ? theme === "dark" : system.matches;
  return html`<button class="quiet icon" onClick=${() => setTheme(dark ? "light" : "dark")}
    aria-label=${dark ? "Light colours" : "Dark colours"}>${dark ? "☀" : "☾"}</button>`;
}

const FILM = /\.(mp4|m4v|mov|mkv|webm|avi|mpe?g|ts|wmv|flv|mp3|wav|m4a|ogg)$/i;

function Films({ go }) {
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
          <${FilmCard} key=${film.id} film=${film} doing=${doing && doing.film === stem(film.name)
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

function FilmCard({ film, doing }) {
  const element = useRef(null);
  const [facts, setFacts] = useState(null);
  const [problem, setProblem] = useState("");
  const [progress, setProgress] = useState({});
  const load = () => {
    setProgress({});
    get(`/films/${film.id}`).then(setFacts).catch((error) => setProblem(error.message));
  };
  useRun(facts && facts.indexing && facts.indexing.run.id, load, setProgress);
  // a film is opened when its card comes into view, because a folder may hold thousands
  useEffect(() => {
    const observer = new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting) return;
      observer.disconnect();
      load();
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [film.id, doing == null]);
  const shares = doing ? { [doing.part]: doing.share } : progress;
  const share = Object.values(shares).find((value) => value < 1);
  return html`
    <li class="film-card" ref=${element}>
      <a href=${`/film/${film.id}`}>
        <div class="film-picture">
          ${facts && html`<img alt="" loading="lazy"
            src=${frameURL(film.id, facts.duration / 2, 480)} />`}
          ${facts && html`<span class="badge">${clock(facts.duration)}</span>`}
        </div>
        <div class="film-text">
          <h2>${film.name}</h2>
          <p class="muted small">${problem || html`${film.folder && `${film.folder} · `}
            ${bytes(film.size)}${facts && html` · <${Indexed} layers=${facts.layers}
            progress=${shares} />`}`}</p>
          ${share != null && html`<${Bar} value=${share} label=${`Indexing ${film.name}`} />`}
        </div>
      </a>
    </li>`;
}

// which parts of a film are indexed, and which one is being indexed
function Indexed({ layers, progress }) {
  const now = layers.findIndex(({ name }) => progress[name] < 1);
  const done = layers.filter((layer) => layer.done || progress[layer.name] === 1);
  if (now < 0) {
    return done.length === layers.length ? html`<span class="good">indexed</span>`
      // what a film does not have, such as subtitles, counts as done
      : done.some(({ name }) => name === "frames") ? "partly indexed" : "not indexed";
  }
  // many films have no subtitles, so the first part is not named
  const ready = layers.slice(1, now).filter((layer) => done.includes(layer))
    .map(({ name }) => `${LAYERS[name].toLowerCase()} ready, `);
  return `indexing: ${ready.join("")}${progressOf(layers[now].name, progress[layers[now].name])}`;
}

function Locked({ onOpen }) {
  const [token, setToken] = useState("");
  const [submit, busy, problem] = useSubmit(() => signIn(token.trim()).then(onOpen));
  return html`<main class="page"><form class="state locked" onSubmit=${submit}>
    <h1>This page is locked</h1>
    <p>Open the link that <code>longtake serve</code> printed, or enter the server's token.</p>
    <label class="field"><span>Token</span><input type="password" autocomplete="off" value=${token}
      onInput=${(event) => setToken(event.target.value)} /></label>
    <button class="primary" disabled=${busy || !token.trim()}>Open</button>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}</form></main>`;
}

// a view that was opened by its address is loaded while the server is asked
const { view } = place();
(LOAD[{ run: "film", trace: "compare" }[view] || view] || (() => {}))();
const root = document.getElementById("app");
root.textContent = "";
render(html`<${App} />`, root);

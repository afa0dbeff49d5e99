// The page: addresses, the bar at the top, and what is shown when something is missing.

import { html, render, useEffect, useErrorBoundary, useState } from "../vendor/preact-htm.js";
import { get, signIn } from "./api.js";
import { Films } from "./films.js";
import { Dialog, Loading, Trouble, useAsync } from "./parts.js";

// loaded when they are shown: the list of films must not wait for them
const later = (load, name) => (props) => {
  const part = useAsync(load, []);
  if (part.error) return html`<main class="page"><${Trouble} error=${part.error} /></main>`;
  return part.data ? html`<${part.data[name]} ...${props} />` : null;
};
const LOAD = { compare: () => import("./compare.js"), film: () => import("./film.js"),
  library: () => import("./library.js"), replay: () => import("./replay.js"), trace: () => import("./trace.js") };
const ComparePage = later(LOAD.compare, "ComparePage");
const FilmPage = later(LOAD.film, "FilmPage");
const LibraryPage = later(LOAD.library, "LibraryPage");
const ReplayPage = later(LOAD.replay, "ReplayPage");
const TracePage = later(LOAD.trace, "TracePage");

const KEYS = [["space", "play or pause"], ["← →", "five seconds back or forth (shift: a frame)"],
  ["/", "search"], ["a", "ask"], ["+ −", "zoom the timeline, when it has the focus"],
  ["↑ ↓", "move through the steps of a run"], ["Esc", "leave a field"], ["?", "this list"]];

function place() {
  const [, view = "", id = ""] = window.location.pathname.split("/");
  return { view, id: decodeURIComponent(id), query: new URLSearchParams(window.location.search) };
}

function useAddress() {
  const [now, setNow] = useState(place());
  useEffect(() => {
    const onPop = () => setNow(place());
    window.addEventListener("popstate", onPop);
    return () => window.removeEventListener("popstate", onPop);
  }, []);
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

  useEffect(() => {
    const onLocked = () => setLocked(true);
    const onNet = () => setOffline(!navigator.onLine);
    window.addEventListener("locked", onLocked);
    window.addEventListener("online", onNet);
    window.addEventListener("offline", onNet);
    return () => {
      window.removeEventListener("locked", onLocked);
      window.removeEventListener("online", onNet);
      window.removeEventListener("offline", onNet);
    };
  }, []);
  useEffect(() => {
    const onKey = (event) => {
      const field = event.target.closest("input, textarea, select");
      if (event.key === "Escape" && field) field.blur();
      if (field || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/") focus(event, "[data-search]");
      else if (event.key === "a") focus(event, "#question");
      else if (event.key === "?") setHelp(true);
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);

  let view;
  if (locked) view = html`<${Locked} onOpen=${() => setLocked(false)} />`;
  else if (failure) view = html`<main class="page"><${Trouble} error=${failure} again=${reset} /></main>`;
  else if (about.error) {
    view = html`<main class="page"><${Trouble} error=${about.error} again=${about.again} /></main>`;
  } else if (!about.data && now.view) { // the list of films does not wait for it
    view = html`<main class="page"><${Loading} what="Opening…" /></main>`;
  } else view = html`<${View} now=${now} go=${go} about=${about.data && { ...about.data, again: about.again }} />`;

  return html`
    <a class="skip" href="#main">Skip to content</a>
    <header class="top">
      <a class="brand" href="/" onClick=${(event) => { event.preventDefault(); go("/"); }}>
        <img src="/assets/icon.svg" alt="" width="22" height="22" /> <span>longtake</span></a>
      <nav aria-label="Main">${[["", "Films"], ["library", "Library"], ["replay", "Replay"]].map(
        ([view, name]) => html`<a href=${`/${view}`} aria-current=${now.view === view ? "page" : undefined}
          onClick=${(event) => { event.preventDefault(); go(`/${view}`); }}>${name}</a>`)}</nav>
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

// a run knows its film, or that it asks all of them; what is shown stays when another run is opened
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

function Theme() {
  const root = document.documentElement;
  const [theme, setTheme] = useState(stored("theme"));
  useEffect(() => {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    store("theme", theme);
    window.dispatchEvent(new Event("theme"));
  }, [theme]);
  const dark = theme === "dark"
    || (!theme && window.matchMedia("(prefers-color-scheme: dark)").matches);
  return html`<button class="quiet icon" onClick=${() => setTheme(dark ? "light" : "dark")}
    aria-label=${dark ? "Light colours" : "Dark colours"}>${dark ? "☀" : "☾"}</button>`;
}

function stored(name) {
  try {
    return window.localStorage.getItem(`longtake-${name}`) || "";
  } catch {
    return "";
  }
}

function store(name, value) {
  try {
    window.localStorage.setItem(`longtake-${name}`, value);
  } catch {
    // private windows keep nothing
  }
}

function Locked({ onOpen }) {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState("");
  const submit = async (event) => {
    event.preventDefault();
    try {
      await signIn(token.trim());
      onOpen();
    } catch (error) {
      setProblem(error.message);
    }
  };
  return html`<main class="page"><form class="state locked" onSubmit=${submit}>
    <h1>This page is locked</h1>
    <p>Open the link that <code>longtake serve</code> printed, or enter the server's token.</p>
    <label class="field"><span>Token</span><input type="password" autocomplete="off" value=${token}
      onInput=${(event) => setToken(event.target.value)} /></label>
    <button class="primary" disabled=${!token.trim()}>Open</button>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}</form></main>`;
}

// a view that was opened by its address is loaded while the server is asked
(LOAD[place().view] || (() => {}))();
const root = document.getElementById("app");
root.textContent = "";
render(html`<${App} />`, root);

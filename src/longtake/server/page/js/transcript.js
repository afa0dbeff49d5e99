// What is said and what is written on screen, beside the film: read, search, select, ask, cut.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { clipURL, post } from "./api.js";
import { clock, plural } from "./format.js";
import { useListener, useSubmit } from "./parts.js";

// lines that are drawn together; far from the view, they are empty boxes
const CHUNK = 40;
// pixels of a line until it was measured
const HEIGHT = 30;

const KINDS = [["speech", "said"], ["onscreen", "on screen"], ["unclear", "unclear"]];

// both kinds in the order of time
function linesOf(timeline) {
  if (!timeline) return [];
  const tagged = (lines, kind) => lines.map((line) => ({ ...line, kind }));
  const onscreen = [true, false].flatMap((clear) =>
    screens(timeline.onscreen.filter((line) => line.clear === clear)));
  return [...tagged(timeline.speech, "speech"), ...tagged(onscreen, "onscreen")]
    .sort((a, b) => a.start - b.start);
}

// what is on screen at once is one line, and a screen that stays is not repeated
function screens(lines) {
  const shown = [];
  for (const line of lines) {
    const last = shown[shown.length - 1];
    if (!/[\p{L}\p{N}]/u.test(line.text)) continue;
    if (last && last.start === line.start) last.text += ` / ${line.text}`;
    else shown.push({ ...line });
  }
  return shown.reduce((kept, each) => {
    const last = kept[kept.length - 1];
    if (last && last.text === each.text) last.end = each.end;
    else kept.push(each);
    return kept;
  }, []);
}

export function Transcript({ film, timeline, player, evidence = [], onSeek, onAsk, onFound, onNames }) {
  const [kinds, setKinds] = useState({ speech: true, onscreen: true, unclear: false });
  const [text, setText] = useState("");
  const [part, setPart] = useState(null);
  const [place, setPlace] = useState(-1);
  const box = useRef(null);
  const touched = useRef(0);
  const all = useMemo(() => linesOf(timeline), [timeline]);
  const lines = useMemo(() => all.filter((line) => kinds[line.clear ? line.kind : "unclear"]
    || (!line.clear && isCited(line, evidence))), [all, kinds, evidence]);
  const wanted = text.trim().toLowerCase();
  const found = useMemo(() => (wanted ? lines.flatMap((line, number) =>
    (line.text.toLowerCase().includes(wanted) ? [number] : [])) : []), [lines, wanted]);
  useEffect(() => onFound(found.map((number) => lines[number])), [found]);
  useEffect(() => setPart(null), [film]);
  const time = player ? player.time : 0;
  const now = useMemo(() => current(lines, time), [lines, Math.floor(time * 5)]);

  const show = (number) => {
    const pane = box.current;
    const chunk = pane && pane.querySelector(`[data-chunk="${Math.floor(number / CHUNK)}"]`);
    if (!chunk) return;
    const line = chunk.querySelector(`[data-line="${number}"]`);
    const top = (line || chunk).getBoundingClientRect().top - pane.getBoundingClientRect().top;
    pane.scrollTop += top - pane.clientHeight / 3;
    // the chunk is drawn when it comes into view, and only then the place of the line is known
    if (!line) setTimeout(() => chunk.isConnected && chunk.childElementCount && show(number), 60);
  };
  // follow the film, unless somebody is reading elsewhere
  useEffect(() => {
    if (now >= 0 && player && !player.paused && Date.now() - touched.current > 4000) show(now);
  }, [now]);
  useEffect(() => { if (found.length) { setPlace(0); show(found[0]); } else setPlace(-1); }, [found]);
  const next = (event) => {
    event.preventDefault();
    if (!found.length) return;
    const number = (place + 1) % found.length;
    setPlace(number);
    show(found[number]);
    onSeek(lines[found[number]].start);
  };
  // a selection by mouse or touch; with shift, from the line that was chosen before
  const select = () => {
    const chosen = window.getSelection();
    if (!chosen || chosen.isCollapsed || !box.current.contains(chosen.anchorNode)) return;
    const range = chosen.getRangeAt(0);
    const numbers = [...box.current.querySelectorAll("[data-line]")]
      .filter((line) => range.intersectsNode(line)).map((line) => Number(line.dataset.line));
    if (numbers.length) setPart({ from: numbers[0], to: numbers[numbers.length - 1] });
  };
  // the selection may end outside
  useListener(["mouseup", "touchend"], () => box.current && select());
  const clear = () => {
    window.getSelection().removeAllRanges();
    setPart(null);
  };
  const choose = (number, event) => {
    if (event.shiftKey) {
      const from = part ? part.from : now >= 0 ? now : number;
      window.getSelection().removeAllRanges();
      setPart({ from: Math.min(from, number), to: Math.max(from, number) });
    } else {
      clear();
      onSeek(lines[number].start);
    }
  };
  if (!all.length) return null;
  const chunks = [];
  for (let first = 0; first < lines.length; first += CHUNK) chunks.push(first);
  return html`
    <section class="transcript" aria-label="Transcript">
      <div class="page-head"><h2>Transcript</h2><span class="spacer"></span>
        ${KINDS.map(([kind, label]) => (kind !== "unclear" || all.some((line) => !line.clear))
          && html`<label class="check"><input type="checkbox" checked=${kinds[kind]}
            onChange=${() => setKinds({ ...kinds, [kind]: !kinds[kind] })} /> ${label}</label>`)}</div>
      <form class="search" onSubmit=${next}>
        <label class="hidden" for="find">Find in the transcript</label>
        <input id="find" type="search" placeholder="Find in the transcript" value=${text}
          onInput=${(event) => setText(event.target.value)} />
        ${wanted && html`<span class="muted small" role="status">${found.length
          ? `${place + 1} of ${plural(found.length, "line")}` : "not there"}</span>`}
        <button disabled=${!found.length}>Next</button></form>
      ${part && html`<${Part} film=${film} lines=${lines.slice(part.from, part.to + 1)}
        onAsk=${onAsk} onClose=${clear} />`}
      <div class=${lines.length > 12 ? "lines" : "lines few"} ref=${box} tabindex="0" role="region" aria-label="Lines"
        onWheel=${() => { touched.current = Date.now(); }}
        onPointerDown=${() => { touched.current = Date.now(); }}
        onKeyDown=${() => { touched.current = Date.now(); }}>
        ${chunks.map((first, number) => html`<${Chunk} key=${first} number=${number} box=${box}
          lines=${lines} first=${first} now=${now >= first && now < first + CHUNK ? now : -1}
          wanted=${wanted} part=${part} evidence=${evidence} onChoose=${choose} film=${film}
          onNames=${onNames} />`)}
      </div>
    </section>`;
}

// the last line that has begun, by halving: there may be many thousands
function current(lines, time) {
  let [low, high] = [0, lines.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lines[middle].start <= time + 0.05) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function Chunk({ number, box, lines, first, now, wanted, part, evidence, onChoose, film, onNames }) {
  const element = useRef(null);
  const [near, setNear] = useState(number === 0);
  const height = useRef(0);
  const count = Math.min(CHUNK, lines.length - first);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => setNear(entries[entries.length - 1].isIntersecting),
      { root: box.current, rootMargin: "900px 0px" });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => { if (near) height.current = element.current.offsetHeight; });
  // not drawn again for changes elsewhere
  const chosen = part && part.to >= first && part.from < first + CHUNK ? part : null;
  return useMemo(() => html`<div ref=${element} data-chunk=${number}
    style=${near ? {} : { height: `${height.current || count * HEIGHT}px` }}>
    ${near && lines.slice(first, first + CHUNK).map((line, offset) => html`<${Line} line=${line}
      number=${first + offset} now=${now === first + offset} wanted=${wanted} film=${film}
      chosen=${chosen && first + offset >= chosen.from && first + offset <= chosen.to}
      cited=${isCited(line, evidence)} onChoose=${onChoose} onNames=${onNames} />`)}</div>`,
  [near, lines, now, wanted, chosen, evidence]);
}

const holds = (one, other) => {
  const middle = (other.start + other.end) / 2;
  return middle >= one.start && middle <= one.end;
};
const SAME = { speech: "speech", subtitle: "speech", onscreen: "onscreen" };

function isCited(line, evidence) {
  // lines and citations that only touch are not the same
  return evidence.some(({ segment, source }) => SAME[source] === line.kind
    && (holds(segment, line) || holds(line, segment)));
}

function Line({ line, number, now, wanted, chosen, cited, onChoose, film, onNames }) {
  const onText = (event) => {
    if (window.getSelection().isCollapsed) onChoose(number, event);
  };
  const states = [line.kind, now && "now", cited && "cited", chosen && "chosen"].filter(Boolean);
  return html`<div class=${`line ${states.join(" ")}`} data-line=${number}
      aria-current=${now ? "true" : undefined}>
    <button class="quiet line-time" onClick=${(event) => onChoose(number, event)}
      aria-label=${`${clock(line.start)}${cited ? ", cited" : ""}: play from here`}>${clock(line.start)}</button>
    <span class="line-text" onClick=${onText}>
      ${line.speaker && html`<${Speaker} name=${line.speaker} film=${film} onNames=${onNames} /> `}
      ${line.kind === "onscreen" && html`<span class="badge-kind">on screen</span> `}
      ${marked(line.text, wanted)}</span></div>`;
}

function marked(text, wanted) {
  if (!wanted) return text;
  const at = text.toLowerCase().indexOf(wanted);
  if (at < 0) return text;
  const end = at + wanted.length;
  return [text.slice(0, at), html`<mark>${text.slice(at, end)}</mark>`, text.slice(end)];
}

function Speaker({ name, film, onNames }) {
  const [given, setGiven] = useState(null);
  const [save, , problem] = useSubmit(async () => {
    onNames(await post(`/films/${film}/speakers`, { speaker: name, name: given }));
    setGiven(null);
  });
  const stop = (event) => event.stopPropagation();
  if (given == null) {
    return html`<button class="quiet speaker" title="Correct this name" onClick=${(event) => {
      stop(event);
      setGiven(name);
    }}>${name}</button>`;
  }
  return html`<form class="rename" onSubmit=${save} onClick=${stop}>
    <label class="hidden" for="speaker">Name of this speaker</label>
    <input id="speaker" value=${given} onInput=${(event) => setGiven(event.target.value)} />
    <button disabled=${!given.trim()}>Save</button>
    <button type="button" class="quiet" onClick=${() => setGiven(null)}>Cancel</button>
    ${problem && html`<span class="problem" role="alert">${problem}</span>`}</form>`;
}

// what can be done with the lines that are selected
function Part({ film, lines, onAsk, onClose }) {
  const [done, setDone] = useState("");
  const start = lines[0].start;
  const end = Math.max(...lines.map((line) => line.end), start + 1);
  const copy = async () => {
    const text = lines.map((line) => `[${clock(line.start)}] ${line.speaker ? `${line.speaker}: ` : ""}${line.text}`);
    try {
      await navigator.clipboard.writeText(text.join("\n"));
      setDone("Copied");
    } catch {
      setDone("The browser did not allow copying.");
    }
  };
  return html`<div class="part" role="toolbar" aria-label="Selected part">
    <strong>${clock(start)} – ${clock(end)}</strong>
    <button onClick=${() => onAsk(start, end)}>Ask about this part</button>
    <button onClick=${copy}>Copy with times</button>
    <a class="button" download=${`${clock(start).replaceAll(":", ".")}.mp4`}
      href=${clipURL(film, start, end)}>Cut as a clip</a>
    <button class="quiet icon" aria-label="Clear the selection" onClick=${onClose}>×</button>
    <span class="muted small" role="status">${done}</span></div>`;
}

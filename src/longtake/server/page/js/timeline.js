// One zoomable timeline: rows of marks over the length of a film, drawn on canvas.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact-htm.js";
import { clock } from "./format.js";
import { useListener, useSize } from "./parts.js";

const AGENT_COLOURS = ["#3e63dd", "#e5484d", "#30a46c", "#f76b15", "#8e4ec6", "#12a594",
  "#d6409f", "#978365"];
const STEPS = [0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200];
const MAX_STRIPS = 6;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function Timeline({ duration, time, rows, onSeek }) {
  const [view, setView] = useState({ start: 0, end: duration });
  const [all, setAll] = useState(false);
  const [tip, setTip] = useState(null);
  const area = useRef(null);
  const [theme, setTheme] = useState(0);
  useEffect(() => setView({ start: 0, end: duration }), [duration]);
  // canvas keeps the colours it was drawn with
  useListener(["theme"], () => setTheme((n) => n + 1));

  const within = (start, span) => {
    const first = Math.min(Math.max(0, start), duration - span);
    return { start: first, end: first + span };
  };
  const zoom = (factor, centre) => setView((now) => {
    const span = Math.min(duration, Math.max(1, (now.end - now.start) * factor));
    const share = (centre - now.start) / (now.end - now.start || 1);
    return within(centre - share * span, span);
  });
  // around the playhead if it can be seen, else around the middle
  const centre = () => (time != null && time >= view.start && time <= view.end
    ? time : (view.start + view.end) / 2);
  const shift = (by) => setView((now) => {
    const span = now.end - now.start;
    return within(now.start + by * span, span);
  });

  // wheel listeners of frameworks are passive, and this one must prevent scrolling
  useEffect(() => {
    const onWheel = (event) => {
      if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) {
        return;
      }
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) {
        zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, timeAt(event, area.current, view));
      } else shift(event.deltaX / 800);
    };
    const element = area.current;
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [view, duration]);

  const onKey = (event) => {
    const step = event.shiftKey ? 0.1 : 5;
    const moves = { ArrowLeft: time - step, ArrowRight: time + step, Home: 0, End: duration };
    if (event.key in moves) {
      event.preventDefault();
      event.stopPropagation();
      onSeek(Math.min(duration, Math.max(0, moves[event.key] || 0)));
    } else if (event.key === "+" || event.key === "=") zoom(0.5, centre());
    else if (event.key === "-") zoom(2, centre());
  };
  const strips = rows.filter((row) => row.kind === "heat");
  const hidden = all ? 0 : Math.max(0, strips.length - MAX_STRIPS);
  const skipped = new Set(strips.slice(0, hidden));
  const shown = rows.filter((row) => !skipped.has(row));
  const span = view.end - view.start;
  const x = ((time - view.start) / (span || 1)) * 100;

  return html`
    <section class="timeline" aria-label="Timeline">
      <div class="timeline-tools">
        <span class="muted">${clock(view.start)} – ${clock(view.end)}</span>
        <span class="spacer"></span>
        ${strips.length > MAX_STRIPS && html`<button class="quiet" onClick=${() => setAll(!all)}>
          ${all ? "Fewer strips" : `All ${strips.length} strips`}</button>`}
        <button class="quiet icon" aria-label="Zoom out" disabled=${span >= duration}
          onClick=${() => zoom(2, centre())}>−</button>
        <button class="quiet icon" aria-label="Zoom in" onClick=${() => zoom(0.5, centre())}>+</button>
        <button class="quiet" disabled=${span >= duration}
          onClick=${() => setView({ start: 0, end: duration })}>Whole film</button>
      </div>
      <div class="timeline-area" ref=${area} role="slider" tabindex="0" aria-label="Time in the film"
        aria-valuemin="0" aria-valuemax=${duration.toFixed(2)} aria-valuenow=${(time || 0).toFixed(2)}
        aria-valuetext=${clock(time || 0)} onKeyDown=${onKey}
        onPointerMove=${(event) => setTip(tipAt(event, area.current, view, shown))}
        onPointerLeave=${() => setTip(null)}>
        <${Track} row=${{ kind: "ruler", label: "" }} view=${view} theme=${theme} version=${0} onSeek=${onSeek} />
        ${shown.map((row) => html`<${Track} key=${row.key} row=${row} view=${view}
          theme=${theme} version=${row.version} onSeek=${onSeek} />`)}
        <div class="playhead-lane" aria-hidden="true">
          ${time != null && x >= 0 && x <= 100 && html`<div class="playhead" style=${{ left: `${x}%` }}></div>`}
        </div>
        ${tip && html`<div class="tip" style=${{ left: `${tip.x}px`, top: `${tip.y}px` }}>
          <strong>${clock(tip.time, true)}</strong> ${tip.text}</div>`}
      </div>
    </section>`;
}

function timeAt(event, area, view) {
  const track = area.querySelector(".track-canvas").getBoundingClientRect();
  const share = Math.min(1, Math.max(0, (event.clientX - track.left) / (track.width || 1)));
  return view.start + share * (view.end - view.start);
}

function tipAt(event, area, view, rows) {
  const element = event.target.closest && event.target.closest(".track");
  if (!element || !element.dataset.key) return null;
  const row = rows.find((each) => each.key === element.dataset.key);
  if (!row) return null;
  const time = timeAt(event, area, view);
  const box = area.getBoundingClientRect();
  const slack = ((view.end - view.start) / Math.max(1, box.width)) * 5;
  const text = textAt(row, time, slack);
  const left = Math.min(event.clientX - box.left, box.width - 220);
  return { time, text, x: Math.max(0, left), y: event.clientY - box.top + 16 };
}

function textAt(row, time, slack) {
  if (row.kind === "heat") {
    const at = row.segments.findIndex((each) => time >= each.start && time <= each.end);
    return at < 0 ? "" : `${row.values[at]}`;
  }
  const near = row.marks.find((mark) => time >= mark.start - slack && time <= mark.end + slack);
  return near ? near.text || "" : "";
}

function Track({ row, view, version, theme, onSeek }) {
  const canvas = useRef(null);
  const [width, setWidth] = useState(0);
  useSize(canvas, (size) => setWidth(size.width));
  useLayoutEffect(() => {
    if (width) draw(canvas.current, row, view, width);
  }, [row, version, view, width, theme]);
  const onClick = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    const time = view.start + share * (view.end - view.start);
    onSeek(snap(row, time, ((view.end - view.start) / box.width) * 4));
  };
  return html`
    <div class=${`track ${row.kind}`} data-key=${row.key || ""}>
      <div class="track-label" title=${row.title || row.label}>${row.label}</div>
      <canvas class="track-canvas" ref=${canvas} onClick=${onClick}></canvas>
    </div>`;
}

// a click beside a mark means the mark
function snap(row, time, slack) {
  if (!row.marks || row.kind === "blocks") return time;
  const near = row.marks.find((mark) => time >= mark.start - slack && time <= mark.end + slack);
  return near && row.kind !== "text" ? near.start : time;
}

const HEIGHTS = { ruler: 20, blocks: 16, text: 14, ticks: 16, heat: 16, cited: 16 };

function draw(canvas, row, view, width) {
  const height = HEIGHTS[row.kind] || 16;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const ink = canvas.getContext("2d");
  ink.scale(ratio, ratio);
  const at = (t) => ((t - view.start) / (view.end - view.start || 1)) * width;
  const seen = (mark) => mark.end >= view.start && mark.start <= view.end;
  DRAW[row.kind]({ ink, row, at, seen, view, width, height });
}

const DRAW = {
  ruler({ ink, at, view, width, height }) {
    const span = view.end - view.start;
    const step = STEPS.find((each) => (each / span) * width >= 64) || 7200;
    ink.fillStyle = colour("--muted");
    ink.font = "11px system-ui, sans-serif";
    for (let t = Math.ceil(view.start / step) * step; t <= view.end; t += step) {
      ink.fillRect(Math.round(at(t)), height - 5, 1, 5);
      if (at(t) < width - 33) ink.fillText(clock(t, step < 1), Math.round(at(t)) + 7, height - 7);
    }
  },
  blocks({ ink, row, at, seen, height }) {
    row.marks.forEach((mark, number) => {
      if (!seen(mark)) return;
      ink.fillStyle = colour(number % 2 ? "--block-a" : "--block-b");
      const left = at(mark.start);
      ink.fillRect(left, 1, Math.max(1, at(mark.end) - left - 1), height - 2);
    });
  },
  text({ ink, row, at, seen, height }) {
    ink.fillStyle = colour(row.colour || "--text-mark");
    for (const mark of row.marks) {
      if (seen(mark)) {
        ink.fillRect(at(mark.start), 4, Math.max(2, at(mark.end) - at(mark.start) - 1), height - 8);
      }
    }
  },
  ticks({ ink, row, at, seen, height }) {
    for (const mark of row.marks) {
      if (!seen(mark)) continue;
      ink.fillStyle = AGENT_COLOURS[(mark.agent || 0) % AGENT_COLOURS.length];
      ink.fillRect(Math.round(at(mark.start)) - 1, 2, 2, height - 4);
    }
  },
  cited({ ink, row, at, seen, height }) {
    ink.fillStyle = colour("--accent");
    for (const mark of row.marks) {
      if (!seen(mark)) continue;
      const left = at(mark.start);
      const size = Math.max(6, at(mark.end) - left);
      ink.beginPath();
      ink.roundRect(left, 3, size, height - 6, 3);
      ink.fill();
    }
  },
  heat({ ink, row, at, seen, height }) {
    const low = Math.min(...row.values);
    const high = Math.max(...row.values);
    ink.fillStyle = colour("--track");
    ink.fillRect(0, 1, ink.canvas.width, height - 2);
    ink.fillStyle = colour("--accent");
    row.segments.forEach((segment, number) => {
      if (!seen(segment)) return;
      const value = high > low ? (row.values[number] - low) / (high - low) : 0.5;
      ink.globalAlpha = 0.06 + 0.94 * value;
      const left = at(segment.start);
      // moments have no length: each lasts until the next
      const next = row.segments[number + 1];
      const end = segment.end > segment.start || !next ? segment.end : next.start;
      ink.fillRect(left, 1, Math.max(2, at(end) - left + 0.5), height - 2);
    });
    ink.globalAlpha = 1;
  },
};

// What is known about a film and a run, as rows.

const lines = (list) => (list || []).map((each) => ({ start: each.start, end: each.end,
  text: each.text }));

export function filmRows(timeline, chapters, hits, found) {
  const rows = [];
  if (chapters && chapters.length) {
    const marks = chapters.map((each) => ({ start: each.start, end: each.end, text: each.title }));
    rows.push({ key: "blocks", kind: "blocks", label: "Chapters", marks });
  }
  if (timeline && timeline.speech.length) {
    rows.push({ key: "speech", kind: "text", label: "Speech", marks: lines(timeline.speech),
      colour: "--speech" });
  }
  const onscreen = lines(timeline && timeline.onscreen.filter((each) => each.clear));
  if (onscreen.length) {
    rows.push({ key: "onscreen", kind: "text", label: "On screen", marks: onscreen,
      colour: "--onscreen" });
  }
  if (hits && hits.hits.length) {
    const marks = hits.hits.map((each) => ({ start: each.time, end: Math.max(each.time,
      each.segment.end), text: each.text || Object.keys(each.sources).join(", ") }));
    rows.push({ key: "hits", kind: "cited", label: "Search", marks });
  }
  if (found && found.length) {
    rows.push({ key: "found", kind: "cited", label: "Found lines", marks: lines(found) });
  }
  return rows;
}

// "similarity: a red car" is one of many similarities, so what follows the colon tells them apart
const short = (label) => label.replace(/^[a-z ]+: /, "");

export function runRows(model, prefix = "") {
  const rows = [];
  if (model.answer && model.answer.evidence.length) {
    const marks = model.answer.evidence.map((each) => ({ start: each.segment.start,
      end: each.segment.end, text: each.text || each.source }));
    rows.push({ key: `${prefix}cited`, kind: "cited", label: "Citations", marks });
  }
  if (model.looks.length) {
    const marks = model.looks.map((look) => ({ start: look.time, end: look.time,
      text: look.agent, agent: model.agents.get(look.agent) }));
    rows.push({ key: `${prefix}looks`, kind: "ticks", label: "Frames seen", marks,
      version: marks.length });
  }
  for (const strip of model.strips) {
    const many = model.rounds.get(strip.label) > 1;
    rows.push({ key: `${prefix}${strip.event}`, kind: "heat",
      label: many ? `${short(strip.label)} · ${strip.round}` : short(strip.label),
      title: `${strip.label}, round ${strip.round}`, segments: strip.segments,
      values: strip.values });
  }
  return rows;
}

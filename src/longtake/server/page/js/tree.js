// The live tree of a run: steps, messages, tool calls and frames. Only visible rows are drawn.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { get, pictureURL } from "./api.js";
import { clock, count, duration, said, words } from "./format.js";
import { useSize } from "./parts.js";

const ROW = 30;
// rows drawn above and below
const MARGIN = 8;
// rows that are scrolled past before others are drawn, so that most frames draw none
const STEP = 8;

export const Tree = (props) => html`<${Rows} ...${props} ...${useFolded(props.model, props.version)} />`;

// which rows of a run are shown
export function useFolded(model, version) {
  const [closed, setClosed] = useState(() => new Set());
  const [kind, setKind] = useState("");
  const rows = useMemo(() => (model ? visible(model, closed, kind) : []), [model, version, closed, kind]);
  return { closed, setClosed, kind, setKind, rows };
}

// two runs side by side: a stage that both have begins at the same height, with gaps where only one
// of them has rows
export function aligned(one, other) {
  const [left, right] = [[], []];
  const rest = stagesOf(other);
  const level = () => {
    const height = Math.max(left.length, right.length);
    for (const list of [left, right]) while (list.length < height) list.push(null);
  };
  for (const stage of stagesOf(one)) {
    const same = rest.findIndex((each) => each.name === stage.name);
    right.push(...rest.splice(0, Math.max(0, same)).flatMap((each) => each.rows));
    level();
    left.push(...stage.rows);
    if (same >= 0) right.push(...rest.shift().rows);
    level();
  }
  right.push(...rest.flatMap((each) => each.rows));
  level();
  return [left, right];
}

// top-level rows, each with the rows inside it
function stagesOf(rows) {
  const stages = [];
  for (const event of rows) {
    if (event.depth && stages.length) stages[stages.length - 1].rows.push(event);
    else stages.push({ name: `${event.kind} ${event.name || event.prompt || event.label || ""}`, rows: [event] });
  }
  return stages;
}

// `beside` holds the lists that scroll together
export function Rows({ model, run, onSeek, pictures, live, rows, closed, setClosed, kind, setKind, beside }) {
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  const [chosen, setChosen] = useState(null);
  const [pinned, setPinned] = useState(true);
  const stages = model.rows.filter((event) => event.kind === "step_began").map((event) => event.id);
  useEffect(() => {
    if (!beside) return undefined;
    const list = box.current;
    beside.add(list);
    return () => beside.delete(list);
  }, [beside]);

  useSize(box, (size) => setHeight(size.height));
  // follow the end while the run goes on, until somebody scrolls up
  useEffect(() => {
    if (live && pinned && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [rows.length, live]);

  const onScroll = (event) => {
    const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
    setTop(Math.floor(scrollTop / (ROW * STEP)) * ROW * STEP);
    setPinned(scrollHeight - scrollTop - clientHeight < ROW * 2);
    for (const list of beside || []) if (list.scrollTop !== scrollTop) list.scrollTop = scrollTop;
  };
  const toggle = (id) => setClosed((now) => {
    const next = new Set(now);
    if (!next.delete(id)) next.add(id);
    return next;
  });
  const first = Math.max(0, top / ROW - MARGIN);
  const last = Math.min(rows.length, Math.ceil((top + height) / ROW) + STEP + MARGIN);
  // elements that leave the view are used again for the rows that enter it
  const elements = Math.ceil(height / ROW) + STEP + 2 * MARGIN + 1;
  // not searched for on every frame while somebody scrolls through thousands of rows
  const at = useMemo(() => (chosen == null ? -1 : rows.findIndex((each) => each && each.id === chosen)),
    [rows, rows.length, chosen]);
  const onKey = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && rows.length) {
      event.preventDefault();
      event.stopPropagation();
      let next = at + step;
      while (next > 0 && next < rows.length - 1 && !rows[next]) next += step;
      next = Math.min(rows.length - 1, Math.max(0, next));
      if (!rows[next]) return;
      setChosen(rows[next].id);
      const [place, shown] = [next * ROW, box.current.scrollTop];
      if (place < shown) box.current.scrollTop = place;
      else if (place + ROW > shown + height) box.current.scrollTop = place + ROW - height;
    } else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && rows[at]
      && rows[at].kind === "step_began") {
      event.preventDefault();
      event.stopPropagation();
      toggle(rows[at].id);
    }
  };

  return html`
    <div class="tree-wrap">
      <div class="tree-tools" role="toolbar" aria-label="Which steps are shown">
        ${FILTERS.map(([name, label]) => html`<button class="quiet" aria-pressed=${kind === name}
          onClick=${() => setKind(name)}>${label}</button>`)}
        <span class="spacer"></span>
        ${stages.length > 0 && html`<button class="quiet" onClick=${() => setClosed(
          new Set(closed.size ? [] : stages))}>${closed.size ? "Unfold" : "Fold stages"}</button>`}
      </div>
      <div class="tree" ref=${box} role="tree" aria-label="Steps of the run" tabindex="0"
        onScroll=${onScroll} onKeyDown=${onKey} aria-activedescendant=${at >= first && at < last
          ? `row-${chosen}` : undefined}>
        <div class="tree-space" role="presentation" style=${{ height: `${rows.length * ROW}px` }}>
          ${rows.slice(first, last).map((event, offset) => event && html`
            <${Row} key=${(first + offset) % elements} event=${event} top=${(first + offset) * ROW}
              open=${!closed.has(event.id)} chosen=${event.id === chosen} model=${model}
              onToggle=${() => toggle(event.id)}
              onChoose=${() => setChosen(event.id === chosen ? null : event.id)} />`)}
        </div>
        ${rows.length === 0 && html`<p class="empty">Nothing has happened yet.</p>`}
      </div>
      ${chosen != null && html`<${Detail} event=${model.byId.get(chosen)} run=${run}
        onSeek=${onSeek} pictures=${pictures} onClose=${() => setChosen(null)} />`}
    </div>`;
}

const FILTERS = [["", "All"], ["chat_called", "Calls"], ["frames_seen", "Frames"], ["scores_set", "Scores"]];

function visible(model, closed, kind) {
  if (kind) return model.rows.filter((event) => event.kind === kind);
  if (!closed.size) return model.rows;
  const hidden = new Set();
  return model.rows.filter((event) => {
    const inside = hidden.has(event.parent) || closed.has(event.parent);
    if (inside && event.kind === "step_began") hidden.add(event.id);
    return !inside;
  });
}

const SIGNS = { run_started: "▶", step_began: "▾", chat_called: "“", tool_called: "ƒ",
  frames_seen: "▦", scores_set: "▤", noted: "·", answered: "✓", failed: "!" };

function Row({ event, top, open, chosen, model, onToggle, onChoose }) {
  const step = event.kind === "step_began";
  const { title, text, meta } = describe(event);
  const bad = event.error || event.kind === "failed";
  const busy = step && !event.ended && !model.ended && model.status;
  // drawn again only if its content changed: scrolling just moves rows
  return useMemo(() => html`
    <div class=${`row ${event.kind} ${bad ? "bad" : ""}`} role="treeitem" id=${`row-${event.id}`}
      aria-level=${event.depth + 1} aria-selected=${chosen} aria-expanded=${step ? open : undefined}
      style=${{ transform: `translateY(${top}px)`, paddingLeft: `${10 + event.depth * 16}px` }}
      onClick=${step ? onToggle : onChoose}>
      <span class="sign" aria-hidden="true">${step && !open ? "▸" : SIGNS[event.kind]}</span>
      <span class="row-title">${title}</span>
      <span class="row-text">${text}</span>
      <span class="row-meta">${busy ? html`<span class="dot" title="under way"></span>` : meta}</span>
    </div>`, [event, top, open, chosen, busy, title, text, meta]);
}

function describe(event) {
  switch (event.kind) {
    case "run_started":
      return { title: event.method, text: Object.values(event.models).join(", "), meta: "" };
    case "step_began":
      return { title: words(event.name), text: pairs(event.data),
        meta: event.ended ? duration(event.ended.seconds) : "" };
    case "chat_called":
      return { title: event.prompt || event.model, text: event.error || oneLine(event.reply),
        meta: event.cached ? "cached" : `${count(event.usage.tokens_in + event.usage.tokens_out)} tok` };
    case "tool_called":
      return { title: event.name, text: `${pairs(event.arguments)} → ${event.error || oneLine(event.result)}`,
        meta: "" };
    case "frames_seen":
      return { title: event.frames.length === 1 ? "1 frame" : `${event.frames.length} frames`,
        text: event.frames.slice(0, 8).map((seen) => clock(seen.time)).join("  "), meta: "" };
    case "scores_set":
      return { title: "scores", text: event.label, meta: `${event.values.length}` };
    case "noted":
      return { title: words(event.label), text: Array.isArray((event.data || {}).passages)
        ? event.data.passages.map((each) => clock(each.start)).join("  ") : pairs(event.data), meta: "" };
    case "answered":
      return { title: "answer", text: said(event.answer), meta: "" };
    default:
      return { title: words(event.kind), text: event.message || "", meta: "" };
  }
}

const oneLine = (text) => String(text || "").replace(/\s+/g, " ").slice(0, 240);
const pairs = (data) => Object.entries(data || {})
  .map(([key, value]) => `${words(key)} ${typeof value === "object" ? JSON.stringify(value) : value}`)
  .join(" · ");

export function Thumbs({ frames, pictures, onSeek }) {
  const source = (digest) => (pictures ? pictures.get(digest) : pictureURL(digest));
  return html`<div class="thumbs">
    ${frames.slice(0, 48).map((seen) => html`
      <button class="thumb" onClick=${() => onSeek && onSeek(seen.time)}
        aria-label=${`Frame at ${clock(seen.time)}`}>
        <img loading="lazy" alt="" src=${source(seen.digest) || ""} />
        <span>${clock(seen.time)}</span>
      </button>`)}
  </div>`;
}

function Detail({ event, run, onSeek, pictures, onClose }) {
  const [whole, setWhole] = useState(null);
  useEffect(() => {
    setWhole(null);
    if (!run || !event || !["chat_called", "tool_called"].includes(event.kind)) return;
    let gone = false;
    get(`/runs/${run}/events/${event.id}`).then((data) => !gone && setWhole(data)).catch(() => {});
    return () => { gone = true; };
  }, [event && event.id, run]);
  if (!event) return null;
  const shown = whole || event;
  const seen = (shown.messages || []).flatMap((message) => message.parts || [])
    .filter((part) => part.image).map((part) => ({ digest: part.image, time: part.time }));
  return html`
    <aside class="detail" aria-label="Details of the chosen row">
      <header><strong>${describe(event).title}</strong>
        <span class="muted">${event.model || ""}</span><span class="spacer"></span>
        <button class="quiet icon" aria-label="Close details" onClick=${onClose}>×</button></header>
      <div class="detail-body" tabindex="0" role="region" aria-label="Details">
      ${event.kind === "frames_seen" && html`
        <${Thumbs} frames=${event.frames} pictures=${pictures} onSeek=${onSeek} />`}
      ${shown.error && html`<p class="problem">${shown.error}</p>`}
      ${shown.thinking && html`<h4>Thinking</h4><pre>${shown.thinking}</pre>`}
      ${shown.reply && html`<h4>Reply</h4><pre>${shown.reply}</pre>`}
      ${shown.result && html`<h4>Result</h4><pre>${shown.result}</pre>`}
      ${(shown.messages || []).map((message) => html`
        <h4>${message.role}</h4><pre>${content(message)}</pre>`)}
      ${seen.length > 0 && html`<h4>Pictures</h4>
        <${Thumbs} frames=${seen} pictures=${pictures} onSeek=${onSeek} />`}
      ${event.kind === "noted" && html`<pre>${JSON.stringify(event.data, null, 2)}</pre>`}
      ${event.kind === "scores_set" && html`<p class="muted">${event.label}: ${event.values.length}
        values from ${Math.min(...event.values)} to ${Math.max(...event.values)}</p>`}
      ${event.kind === "answered" && html`<p>${event.answer.reason}</p>`}
      ${event.kind === "run_started" && html`<pre>${JSON.stringify(
        { models: event.models, fields: event.fields, budget: event.budget }, null, 2)}</pre>`}
      </div>
    </aside>`;
}

function content(message) {
  const parts = message.parts || message.content || [];
  if (typeof parts === "string") return parts;
  return (Array.isArray(parts) ? parts : [parts])
    .map((part) => (typeof part === "string" ? part : part.text || "[picture]")).join("\n");
}

// An answer as a document: sentences with numbered citations, which seek the player and play.

import { html } from "../vendor/preact-htm.js";
import { frameURL, url } from "./api.js";
import { clock, plural, said } from "./format.js";

const SOURCES = { frame: "picture", caption: "picture, described", speech: "said",
  subtitle: "said (subtitles)", onscreen: "text on screen" };

// `record` is what the server tells of a run that has ended; a replayed trace has none
export function Answer({ answer, film, record = {}, disagree, run, cited, onCite, onFollowUp, children }) {
  if (!answer) return null;
  const { claims = [], sources = [], scope, unseen = [] } = record;
  const text = said(answer);
  const filmOf = (number) => film || (sources[number] || {}).film;
  const mark = (number) => html`<${Mark} number=${number} each=${answer.evidence[number]}
    film=${filmOf(number)} onClick=${() => onCite && onCite(number, answer.evidence[number])} />`;
  const every = answer.evidence.map((_, number) => number);
  const parts = claims.length ? claims : text ? [{ text, citations: every.slice(0, 8) }] : [];
  const facts = [record.support, scope
    && `${plural(scope.searched, "film")} searched, ${scope.looked_at} looked at`].filter(Boolean);
  return html`
    <section class="answer" aria-label="Answer" aria-live="polite">
      <p class=${`answer-text ${text.length > 160 ? "long" : ""}`}>${parts.length
        ? parts.map((claim) => html`<span>${claim.text}</span>${claim.citations.map(mark)} `)
        : scope ? "In no film" : "No answer"}</p>
      ${record.outcome && html`<p class="note">${sentence(record.outcome)}</p>`}
      ${answer.reason && answer.reason !== record.outcome
        && html`<p class="reason">${answer.reason}</p>`}
      ${facts.length > 0 && html`<p class="support">${facts.map(sentence).join(" · ")}</p>`}
      ${unseen.length > 0 && html`<p class="unseen">Not looked at: ${unseen.join("; ")}</p>`}
      ${children}
      ${every.length > 0 && html`
        <h3>Citations</h3>
        <ol class="cards">${answer.evidence.map((each, number) => html`
          <${Card} each=${each} film=${filmOf(number)} number=${number + 1}
            name=${(sources[number] || {}).name} chosen=${cited === number}
            against=${disagree && disagree.has(each.text)}
            onClick=${() => onCite && onCite(number, each)} />`)}</ol>`}
      ${(answer.nearest || []).length > 0 && html`
        <h3>Not an answer: a search for “${answer.nearest[0].text}” finds these pictures</h3>
        <ol class="cards nearest">${answer.nearest.map((each, number) => html`
          <${Card} each=${{ ...each, text: "", source: "search result" }} film=${film}
            number=${number + 1} onClick=${() => onCite && onCite(number, each)} />`)}</ol>`}
      ${run && html`<div class="actions">
        ${onFollowUp && html`<button onClick=${onFollowUp}>Ask a follow-up</button>`}
        <${Share} run=${run} cites=${every.length > 0} /></div>`}
    </section>`;
}

const sentence = (text) => (text ? text[0].toUpperCase() + text.slice(1) : "");

const FILES = [["html", "Page with its stills"], ["md", "Markdown"]];
const CITED = [["mp4", "Reel: the cited stretches as one film"], ["srt", "Citations as subtitles (SRT)"],
  ["edl", "Citations for an editor (EDL)"], ["otio", "Citations for an editor (OpenTimelineIO)"]];

function Share({ run, cites }) {
  const offered = cites ? [...FILES, ...CITED] : FILES;
  return html`<details class="menu"><summary class="button">Share</summary><ul>
    ${offered.map(([ending, what]) => html`<li><a download
      href=${url(`/runs/${run}/export.${ending}`)}>${what}</a></li>`)}
    <li><a href=${url(`/runs/${run}/trace`)} download>Trace file</a></li></ul></details>`;
}

// the number of a citation; pointing at it or focusing it shows the still and the line
function Mark({ number, each, film, onClick }) {
  if (!each) return null;
  const { start, end } = each.segment;
  return html`<button class="cite" onClick=${onClick} data-start=${start}
    aria-label=${`Citation ${number + 1}, ${clock(start)}: ${each.text || each.source}`}>${number + 1}
    <span class="peek" aria-hidden="true">${film && html`<img loading="lazy" alt=""
      src=${frameURL(film, (start + end) / 2, 320)} />`}
      <span>${clock(start)} ${each.text && html`<q>${each.text}</q>`}</span></span></button>`;
}

// What a model is reading and writing; the checked answer takes its place.
export function Draft({ model, onSeek }) {
  if (!model.passages.length && !model.draft) return null;
  return html`
    <section class="answer" aria-label="Draft">
      ${model.draft && html`<p class="answer-text muted">${model.draft}</p>
        <p class="note">${model.checking ? "Checking…" : "Draft, not checked yet"}</p>`}
      ${model.passages.length > 0 && html`<h3>Reading</h3>
        <ol class="hits">${model.passages.map((each) => html`<li>
          <button class="hit" onClick=${() => onSeek(each.start)}><span>
            <strong>${clock(each.start)}</strong> <q>${each.text}</q></span></button></li>`)}</ol>`}
    </section>`;
}

function Card({ each, film, name, number, chosen, against, onClick }) {
  const { start, end } = each.segment;
  const times = end - start >= 1 ? `${clock(start)} – ${clock(end)}` : clock(start, true);
  // a single frame is saved with a moment of what follows
  const stretch = Math.max(end, start + 2);
  return html`
    <li>
      <button class="card" aria-pressed=${chosen} onClick=${onClick} data-start=${start}>
        <span class="card-picture">${film && html`<img loading="lazy" alt=""
          src=${frameURL(film, (start + end) / 2, 320)} />`}</span>
        <span class="card-body">
          <span class="card-time"><span class="number">${number}</span> ${times}${" "}
            <span class="muted">${SOURCES[each.source] || each.source}</span></span>
          ${against && html`<span class="against">Another moment says otherwise</span>`}
          ${name && html`<span class="card-film">${name}</span>`}
          ${each.text && html`<q class="card-text">${each.text}</q>`}
        </span>
      </button>
      ${film && html`<a class="clip" download=${`${clock(start).replaceAll(":", ".")}.mp4`}
        href=${clipURL(film, start, stretch)}>Save clip</a>`}
    </li>`;
}

export const clipURL = (film, start, end) =>
  url(`/films/${film}/clip?start=${start.toFixed(3)}&end=${end.toFixed(3)}`);

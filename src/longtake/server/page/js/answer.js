// An answer with its citations: cards that seek the player and play the cited stretch.

import { html } from "../vendor/preact-htm.js";
import { frameURL, url } from "./api.js";
import { clock, plural, share } from "./format.js";
import { STATUS } from "./parts.js";

export function Answer({ answer, film, sources = [], scope, run, cited, onCite, onFollowUp }) {
  if (!answer) return null;
  const said = answer.choice ? `${answer.choice}. ${answer.text}` : answer.text;
  const facts = [
    answer.confidence != null && `Confidence ${share(answer.confidence)}`,
    scope && `${plural(scope.searched, "film")} searched, ${scope.looked_at} looked at`,
  ].filter(Boolean);
  return html`
    <section class="answer" aria-label="Answer" aria-live="polite">
      <p class="answer-text">${said || (scope ? "In no film" : "No answer")}</p>
      ${STATUS[answer.status] && !(scope && answer.status === "abstained")
        && html`<p class="note">${STATUS[answer.status]}</p>`}
      ${answer.reason && html`<p class="reason">${answer.reason}</p>`}
      ${facts.length > 0 && html`<p class="muted small">${facts.join(" · ")}</p>`}
      ${answer.evidence.length > 0 && html`
        <h3>Citations</h3>
        <ol class="cards">
          ${answer.evidence.map((each, number) => html`
            <${Card} each=${each} film=${film || (sources[number] || {}).film} number=${number + 1}
              name=${(sources[number] || {}).name} chosen=${cited === number}
              onClick=${() => onCite && onCite(number, each)} />`)}
        </ol>`}
      ${(answer.nearest || []).length > 0 && html`
        <h3>Not an answer: a search for “${answer.nearest[0].text}” finds these pictures</h3>
        <ol class="cards nearest">
          ${answer.nearest.map((each, number) => html`
            <${Card} each=${{ ...each, text: "", source: "search result" }} film=${film}
              number=${number + 1} onClick=${() => onCite && onCite(number, each)} />`)}
        </ol>`}
      ${run && html`<div class="actions">
        ${onFollowUp && html`<button onClick=${onFollowUp}>Ask a follow-up</button>`}
        <a class="button quiet" href=${url(`/runs/${run}/export.html`)} download>HTML</a>
        <a class="button quiet" href=${url(`/runs/${run}/export.md`)} download>Markdown</a>
        <a class="button quiet" href=${url(`/runs/${run}/trace`)} download>Trace</a>
      </div>`}
    </section>`;
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

function Card({ each, film, name, number, chosen, onClick }) {
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
            <span class="muted">${each.source}</span></span>
          ${name && html`<span class="card-film">${name}</span>`}
          ${each.text && html`<q class="card-text">${each.text}</q>`}
        </span>
      </button>
      ${film && html`<a class="clip" download=${`${clock(start).replaceAll(":", ".")}.mp4`}
        href=${url(`/films/${film}/clip?start=${start.toFixed(3)}&end=${stretch.toFixed(3)}`)}>
        Save clip</a>`}
    </li>`;
}

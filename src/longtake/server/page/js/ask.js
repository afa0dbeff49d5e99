// The ask box: a question, how carefully to look, and under "Advanced" everything else.

import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { post } from "./api.js";
import { bytes, count, money } from "./format.js";
import { Bar, useRun } from "./parts.js";

const LIMITS = [["seconds", "Seconds"], ["cost", "US dollars"], ["calls", "Calls"],
  ["frames", "Frames"], ["tokens", "Tokens"]];
// docs/lab-results.md has what each of them was measured to be worth
const CHOICES = [["lookup", "Quick", "what is said and written"],
  ["auto", "Careful", "looks where it matters"],
  ["symphony", "Thorough", "looks everywhere"]];

// a method by the name of its choice, if it is one: "Quick (lookup)"
export const methodName = (method) => {
  const choice = CHOICES.find(([name]) => name === method);
  return choice ? `${choice[1]} (${method})` : method;
};

export function AskBox({ film, about, given, carried, onCarried, onRun, onCompare }) {
  const [question, setQuestion] = useState("");
  const [options, setOptions] = useState("");
  const [method, setMethod] = useState(about.default_method);
  const [models, setModels] = useState("");
  const [budget, setBudget] = useState({});
  const [fresh, setFresh] = useState(false);
  const [warmed, setWarmed] = useState(false);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const [open, setOpen] = useState(false);
  // a question that was suggested, or the beginning of one
  useEffect(() => {
    if (!given) return;
    setQuestion(given.text);
    if (given.method) setMethod(given.method);
    const box = document.getElementById("question");
    box.focus();
    if (given.cursor != null) setTimeout(() => box.setSelectionRange(given.cursor, given.cursor));
  }, [given]);

  const ask = () => ({
    film, question: question.trim(), method, fresh, carried,
    options: options.split("\n").map((line) => line.trim()).filter(Boolean),
    models: models.split(/\s+/).filter(Boolean),
    budget: Object.fromEntries(Object.entries(budget).filter(([, value]) => value > 0)),
  });

  // methods that look are not offered while no model sees
  const choices = about.vision ? CHOICES.slice(0, 1) : CHOICES;
  const named = choices.map(([name]) => name);
  // a model on the server is loaded while the question is typed
  useEffect(() => {
    if (!film || question.trim().length < 3) return undefined;
    const timer = setTimeout(() => post("/warm-up", ask()).catch(() => {}), warmed ? 350 : 0);
    setWarmed(true);
    return () => clearTimeout(timer);
  }, [question, options, method, models]);

  const submit = async (act) => {
    setBusy(true);
    setProblem("");
    try {
      await act(ask());
      setOpen(false);
    } catch (error) {
      setProblem(error.message);
    }
    setBusy(false);
  };
  const onSubmit = (event) => {
    event.preventDefault();
    if (question.trim()) submit(onRun);
  };
  const onKey = (event) => {
    if (event.key === "Enter" && !event.shiftKey) onSubmit(event);
  };
  const chosen = about.methods.find((each) => each.name === method);
  const other = !named.includes(method);

  return html`
    <form class="ask" onSubmit=${onSubmit} aria-label="Ask a question">
      <label class="hidden" for="question">Question</label>
      <textarea id="question" rows="2"
        placeholder=${film ? "Ask about this film…" : "Ask all films…"}
        value=${question} onInput=${(event) => setQuestion(event.target.value)}
        onKeyDown=${onKey}></textarea>
      ${carried !== "" && html`<div class="carried">
        <label for="carried">Carried from the conversation</label>
        <textarea id="carried" rows="3" value=${carried}
          onInput=${(event) => onCarried(event.target.value)}></textarea>
        <button type="button" class="quiet" onClick=${() => onCarried("")}>Start afresh</button>
      </div>`}
      <fieldset class="choices"><legend class="hidden">How carefully to look</legend>
        ${choices.map(([name, label, what]) => html`<label class=${method === name ? "on" : ""}>
          <input type="radio" name="method" value=${name} checked=${method === name}
            onChange=${() => setMethod(name)} /> <strong>${label}</strong>
          <span>${what}</span></label>`)}
      </fieldset>
      <div class="ask-row">
        <div class="chosen" aria-live="polite">${other && html`<span>${method}:
          ${" "}${chosen.summary}</span>`}</div>
        <button class="primary" disabled=${busy || !question.trim()}>Ask</button>
      </div>
      ${about.vision && html`<${GetVision} offer=${about.vision}
        onDone=${about.again} />`}
      <details class="more" open=${open} onToggle=${(event) => setOpen(event.target.open)}>
        <summary>Advanced: methods, options, models, budget</summary>
        <label class="field"><span>Method</span>
          <select value=${method} onChange=${(event) => setMethod(event.target.value)}>
            ${about.methods.map((each) => html`<option value=${each.name}>${each.name}</option>`)}
          </select><span class="muted small">${chosen ? chosen.summary : ""}</span></label>
        <label class="field"><span>Possible answers, one per line (none: an open question)</span>
          <textarea rows="3" value=${options}
            onInput=${(event) => setOptions(event.target.value)}></textarea></label>
        <label class="field"><span>Models, as NAME or ROLE=NAME</span>
          <input list="models" value=${models} spellcheck="false"
            placeholder=${about.server_models.join(" ") || "the built-in ones"}
            onInput=${(event) => setModels(event.target.value)} /></label>
        <datalist id="models">${about.models.map((name) => html`<option value=${name} />`)}</datalist>
        <fieldset><legend>Budget</legend><div class="limits">
          ${LIMITS.map(([name, label]) => html`<label class="field"><span>${label}</span>
            <input type="number" min="0" step="any" inputmode="decimal" value=${budget[name] || ""}
              onInput=${(event) => setBudget({ ...budget, [name]: Number(event.target.value) })} />
          </label>`)}
        </div></fieldset>
        <label class="check"><input type="checkbox" checked=${fresh}
          onChange=${(event) => setFresh(event.target.checked)} /> Do not reuse earlier replies</label>
        ${onCompare && html`<div class="actions">${choices.length > 1 && html`<button
            type="button" disabled=${busy || !question.trim()} onClick=${() =>
            submit((wanted) => onCompare(wanted, named))}>Compare the three choices</button>`}
          <button type="button" disabled=${busy || !question.trim()}
            onClick=${() => submit(onCompare)}>Compare all methods</button></div>`}
      </details>
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    </form>`;
}

// the built-in models read; one that sees is downloaded here, not on a command line
export function GetVision({ offer, onDone }) {
  const [job, setJob] = useState(null);
  const [problem, setProblem] = useState("");
  useRun(job && job.run.id, (status) => {
    setJob(null);
    if (status.error) setProblem(status.error);
    else onDone();
  }, (progress) => setJob((now) => now && { ...now, progress }));
  const start = () => post("/models/vision").then(setJob).catch((error) => setProblem(error.message));
  const shares = job ? Object.values(job.progress || {}) : [];
  return html`<div class="vision" role="note">
    <p>The built-in models know pictures only by the text in them and by guesses. A model that sees
      runs on this computer, too.</p>
    ${job ? html`<p role="status">Downloading ${offer.name}…</p><${Bar} label="Download"
        value=${shares.length ? Math.min(...shares) : 0} />`
      : html`<button type="button" onClick=${start}>Get a model that sees</button>
        <span class="muted small"> ${offer.name}, ${bytes(offer.size)}, ${offer.licence}, from
        ${" "}${offer.source.replace(/^https?:\/\//, "")}</span>`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}</div>`;
}

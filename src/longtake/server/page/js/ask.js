// The ask box: question, options, method, models, budget; the estimate before the run.

import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { post } from "./api.js";
import { count, money } from "./format.js";

const LIMITS = [["seconds", "Seconds"], ["cost", "US dollars"], ["calls", "Calls"],
  ["frames", "Frames"], ["tokens", "Tokens"]];

export function AskBox({ film, about, carried, onCarried, onRun, onCompare, initial }) {
  const [question, setQuestion] = useState((initial && initial.question) || "");
  const [options, setOptions] = useState((initial && initial.options.join("\n")) || "");
  const [method, setMethod] = useState((initial && initial.method) || about.default_method);
  const [models, setModels] = useState(((initial && initial.models) || []).join(" "));
  const [budget, setBudget] = useState({});
  const [fresh, setFresh] = useState(false);
  const [estimate, setEstimate] = useState(null);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const [open, setOpen] = useState(false);
  const box = useRef(null);

  const ask = () => ({
    film, question: question.trim(), method, fresh, carried,
    options: options.split("\n").map((line) => line.trim()).filter(Boolean),
    models: models.split(/\s+/).filter(Boolean),
    budget: Object.fromEntries(Object.entries(budget).filter(([, value]) => value > 0)),
  });

  // the estimate follows what is written, once the writing pauses; it is made for one film
  useEffect(() => {
    if (!film || question.trim().length < 3) {
      setEstimate(null);
      return;
    }
    let gone = false;
    const timer = setTimeout(async () => {
      try {
        const [figures] = await post("/estimate", { ask: ask() });
        if (!gone) { setEstimate(figures); setProblem(""); }
      } catch (error) {
        if (!gone) { setEstimate(null); setProblem(error.message); }
      }
    }, 350);
    return () => { gone = true; clearTimeout(timer); };
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

  return html`
    <form class="ask" onSubmit=${onSubmit} aria-label="Ask a question">
      <label class="hidden" for="question">Question</label>
      <textarea id="question" ref=${box} rows="2"
        placeholder=${film ? "Ask about this film…" : "Ask all films…"}
        value=${question} onInput=${(event) => setQuestion(event.target.value)}
        onKeyDown=${onKey}></textarea>
      ${carried !== "" && html`<div class="carried">
        <label for="carried">Carried from the conversation</label>
        <textarea id="carried" rows="3" value=${carried}
          onInput=${(event) => onCarried(event.target.value)}></textarea>
        <button type="button" class="quiet" onClick=${() => onCarried("")}>Start afresh</button>
      </div>`}
      <div class="ask-row">
        <label class="field"><span>Method</span>
          <select value=${method} onChange=${(event) => setMethod(event.target.value)}>
            ${about.methods.map((each) => html`<option value=${each.name}>${each.name}</option>`)}
          </select></label>
        <div class="estimate" aria-live="polite">${estimate ? html`
          <span class="muted small">at most</span>
          <span>${count(estimate.calls)} calls, ${count(estimate.frames)} frames,
            ${" "}${money(estimate.cost)}</span>` : html`<span class="muted small">
            ${chosen ? chosen.summary : ""}</span>`}</div>
        <button class="primary" disabled=${busy || !question.trim()}>Ask</button>
      </div>
      <details class="more" open=${open} onToggle=${(event) => setOpen(event.target.open)}>
        <summary>Options, models and budget</summary>
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
        ${onCompare && html`<button type="button" disabled=${busy || !question.trim()}
          onClick=${() => submit(onCompare)}>Compare all methods</button>`}
      </details>
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    </form>`;
}

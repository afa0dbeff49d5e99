// What is known about a film and a run, as rows of a timeline.

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

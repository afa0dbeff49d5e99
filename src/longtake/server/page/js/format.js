// Numbers and times as people read them.

export function clock(seconds, fraction = false) {
  if (!Number.isFinite(seconds)) return "–:––";
  const tenths = Math.floor(Math.max(0, seconds) * 10 + 1e-6);
  const whole = Math.floor(tenths / 10);
  const h = Math.floor(whole / 3600);
  const m = Math.floor(whole / 60) % 60;
  const s = whole % 60;
  const two = (n) => String(n).padStart(2, "0");
  const text = h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
  return fraction ? `${text}.${tenths % 10}` : text;
}

export function bytes(n) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let size = n;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${size < 10 && unit ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

export function money(cost) {
  if (cost == null) return "unknown";
  if (cost === 0) return "free";
  return cost < 0.01 ? `$${cost.toFixed(4)}` : `$${cost.toFixed(2)}`;
}

export const count = (n) => (n == null ? "–" : n.toLocaleString("en"));

// how long something is, which a clock could be mistaken for a time of day
export function duration(seconds) {
  if (seconds == null) return "–";
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60) % 60;
  if (whole < 3600) return `${minutes} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${minutes} min`;
}

export const share = (value) => `${Math.round(value * 100)} %`;

export function ago(unix) {
  const seconds = Date.now() / 1000 - unix;
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(unix * 1000).toLocaleDateString();
}

const SOURCES = { picture: "picture", speech: "said", onscreen: "on screen", meaning: "alike in meaning" };
// where a search found something
export const sourcesOf = (names) => names.map((name) => SOURCES[name] || name).join(", ");

export const words = (name) => name.replaceAll("_", " ");
export const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

// the chosen option with its letter, or the text of an open answer
export const said = (answer) => (answer.choice ? `${answer.choice}. ${answer.text}` : answer.text);

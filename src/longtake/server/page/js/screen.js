// The screen on which a film plays, and the keys that move it.

import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { frameURL } from "./api.js";
import { clock } from "./format.js";
import { Player } from "./player.js";

// the player of a film, which redraws whoever uses it while it plays
export function usePlayer(video, film, duration) {
  const [player, setPlayer] = useState(null);
  const [, tick] = useState(0);
  useEffect(() => {
    const opened = new Player(video.current, film, duration);
    opened.subscribe(() => tick((n) => n + 1));
    setPlayer(opened);
    window.longtakePlayer = opened;
    return () => opened.close();
  }, [film]);
  useKeys(player);
  return player;
}

function useKeys(player) {
  useEffect(() => {
    const onKey = (event) => {
      const typing = event.target.closest("input, textarea, select, [role=tree], [role=slider]");
      if (!player || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      // a focused button keeps its own space bar
      if (event.key === " " && !event.target.closest("button, a, video, summary")) player.toggle();
      else if (event.key === "ArrowLeft") player.seek(player.time - (event.shiftKey ? 0.1 : 5));
      else if (event.key === "ArrowRight") player.seek(player.time + (event.shiftKey ? 0.1 : 5));
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [player]);
}

export function Screen({ video, player, facts }) {
  return html`
    <div class="screen" style=${{ aspectRatio: `${facts.width} / ${facts.height}` }}>
      <video ref=${video} playsinline controls=${!(player && player.idle)}
        aria-label=${`Player: ${facts.name}`} poster=${frameURL(facts.id, facts.duration / 2, 960)}></video>
      ${player && player.idle && html`<button class="play" aria-label="Play"
        onClick=${() => player.toggle()}>▶</button>`}
      ${player && player.before != null && player.paused && html`<button class="back"
        onClick=${() => player.back()}>Back to ${clock(player.before)}</button>`}
      ${player && player.error && html`<p class="screen-note">${player.error}</p>`}
    </div>`;
}

// A <video> whose times are those of the film, played as it is or from a stream of the server; the
// screen on which it plays, and the keys that move it.

import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { get, fileURL, frameURL, url } from "./api.js";
import { clock } from "./format.js";
import { useListener } from "./parts.js";

// seconds that are fetched ahead of the playhead
const AHEAD = 40;
const VIEWER = Math.random().toString(36).slice(2);

export class Player {
  constructor(video, film, duration) {
    this.video = video;
    this.duration = duration;
    this.film = film;
    this.listeners = new Set();
    this.until = null;
    this.error = "";
    this.mode = "";
    this.wanted = null;
    // the time before a citation was clicked
    this.before = null;
    for (const name of ["timeupdate", "play", "pause", "seeked", "loadeddata"]) {
      video.addEventListener(name, () => this.tick());
    }
    video.addEventListener("error", () => this.fail("This film cannot be played here."));
    this.ready = this.open();
  }

  async open() {
    try {
      const how = await get(`/films/${this.film}/play`);
      this.mode = how.mode;
      this.codecs = how.codecs;
      if (how.mode === "direct") {
        this.video.src = fileURL(this.film);
      } else if (!("MediaSource" in window) || !MediaSource.isTypeSupported(how.codecs)) {
        this.fail("This browser cannot play the film; frames and answers still work.");
      } else {
        // "none" would keep Chromium from opening the stream at all
        this.video.preload = "auto";
      }
    } catch (problem) {
      this.fail(problem.message);
    }
    this.tick();
  }

  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  fail(message) {
    this.error = message;
    this.tick();
  }

  get time() {
    return this.wanted ?? this.video.currentTime;
  }

  get paused() {
    return this.video.paused;
  }

  tick() {
    if (this.until != null && this.video.currentTime >= this.until) {
      this.video.pause();
      this.until = null;
    }
    for (const listener of this.listeners) listener();
  }

  // a stream is opened when somebody plays or seeks: it costs the server work
  get idle() {
    return !this.error && this.mode !== "" && this.mode !== "direct" && !this.stopping;
  }

  back() {
    const { before } = this;
    this.before = null;
    this.seek(before);
  }

  async seek(time, { play = false, until = null } = {}) {
    // several citations in a row lead back to where the first of them was clicked
    if (until == null) this.before = null;
    else if (this.before == null) this.before = this.time;
    this.until = until;
    this.wanted = Math.max(0, time);
    this.tick();
    await this.ready;
    if (this.error) return;
    if (this.mode === "direct") await this.seekFile(this.wanted);
    else await this.seekStream(this.wanted);
    this.wanted = null;
    this.until = until;
    if (play) await this.video.play().catch(() => {});
    this.tick();
  }

  async seekFile(time) {
    if (this.video.readyState < 1) await event(this.video, "loadedmetadata");
    const seeked = event(this.video, "seeked");
    this.video.currentTime = time;
    await seeked;
  }

  async seekStream(time) {
    if (within(this.video.buffered, time)) {
      this.video.currentTime = time;
      return;
    }
    this.stop();
    const stopping = new AbortController();
    this.stopping = stopping;
    const source = new MediaSource();
    if (this.objectURL) URL.revokeObjectURL(this.objectURL);
    this.objectURL = URL.createObjectURL(source);
    this.video.src = this.objectURL;
    await event(source, "sourceopen");
    const buffer = source.addSourceBuffer(this.codecs);
    // rounded down: the stream must not begin after the wanted time
    const from = (Math.floor(time * 1000) / 1000).toFixed(3);
    const address = url(`/films/${this.film}/stream?from=${from}&viewer=${VIEWER}`);
    const response = await fetch(address, { signal: stopping.signal });
    if (!response.ok) {
      this.fail("The film cannot be streamed.");
      return;
    }
    buffer.timestampOffset = Number(response.headers.get("X-Start") || 0);
    source.duration = this.duration;
    this.pump(source, buffer, response.body.getReader(), stopping.signal);
    // browsers may ignore a time that is set before the metadata is loaded
    if (this.video.readyState < 1) await event(this.video, "loadedmetadata");
    const seeked = event(this.video, "seeked");
    this.video.currentTime = time;
    await seeked;
  }

  async pump(source, buffer, reader, signal) {
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (signal.aborted) return;
        if (done) break;
        buffer.appendBuffer(value);
        await event(buffer, "updateend");
        // no more is read while enough is buffered, so the server pauses, too
        while (!signal.aborted && ahead(this.video) > AHEAD) await pause(250);
      }
      if (source.readyState === "open") source.endOfStream();
    } catch (problem) {
      if (!signal.aborted) this.fail("The stream was interrupted.");
    }
  }

  stop() {
    if (this.stopping) this.stopping.abort();
    this.stopping = null;
  }

  async toggle() {
    this.until = null;
    await this.ready;
    if (!this.video.paused) this.video.pause();
    else if (this.mode !== "direct" && !this.stopping) await this.seek(0, { play: true });
    else await this.video.play().catch(() => {});
  }

  close() {
    this.stop();
    this.video.removeAttribute("src");
    this.video.load();
  }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function event(target, name) {
  return new Promise((resolve) => target.addEventListener(name, resolve, { once: true }));
}

function within(ranges, time) {
  for (let i = 0; i < ranges.length; i += 1) {
    if (time >= ranges.start(i) - 0.01 && time < ranges.end(i) - 0.05) return true;
  }
  return false;
}

function ahead(video) {
  const { buffered, currentTime } = video;
  return buffered.length ? buffered.end(buffered.length - 1) - currentTime : 0;
}

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
  useListener(["keydown"], (event) => {
    const typing = event.target.closest("input, textarea, select, [role=tree], [role=slider]");
    if (!player || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    // a focused button keeps its own space bar
    if (event.key === " " && !event.target.closest("button, a, video, summary")) player.toggle();
    else if (event.key === "ArrowLeft") player.seek(player.time - (event.shiftKey ? 0.1 : 5));
    else if (event.key === "ArrowRight") player.seek(player.time + (event.shiftKey ? 0.1 : 5));
    else return;
    event.preventDefault();
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

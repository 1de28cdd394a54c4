"use strict";
// Where the page's data come from: all of it embedded in the report, or the server of a live study.
//
// Both answer the same questions: trials, strip, about; series(name), whole(n), figure(name), near(n), compare(),
// drawing(n). Those with an argument answer with a promise.

// Lists of like records travel as {columns, rows}; here they become objects again.
function unrolled(value) {
  if (Array.isArray(value)) return value.map(unrolled);
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value.columns) && Array.isArray(value.rows) && Object.keys(value).length === 2) {
    return value.rows.map((row) => Object.fromEntries(value.columns.map((name, i) => [name, unrolled(row[i])])));
  }
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, unrolled(inner)]));
}

// The bulky part of a report: gzip in base64.
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

class EmbeddedSource {
  constructor(data) {
    const trials = []; // by number; of a large study with gaps
    for (const trial of data.trials) trials[trial.number] = trial;
    Object.assign(this, { about: data.about, strip: data.strip, trials, data, isLive: false, revision: 0 });
  }
  async start(changed) {
    this.unpacked = await unpacked(this.data.packed);
    await changed();
  }
  async series(name) { return unrolled(this.data.series[name]); }
  async whole(n) { return this.unpacked.whole[n]; }
  async figure(name) { return unrolled(this.data.figures[name]) || { message: "it is not part of this report" }; }
  async near(n) { return this.nearKnown(n); }
  async compare() { return unrolled(this.data.compare); }
  get total() { return this.trials.length; }
  async table() { return null; }
  nearKnown(n) { return unrolled(this.unpacked.near[n]) || {}; }
  figureKnown(name) { return unrolled(this.data.figures[name]); }
  drawing(n) {
    const text = this.unpacked.drawings[n];
    return text ? `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}` : null;
  }
}

const LOST_AFTER = 4000; // milliseconds without a tick; the server sends one a second
const POLL_EVERY = 1500;
// Drawing takes the search's processors where the browser runs beside it: at most a thirtieth of the time goes into it.
const REST = 30;
const LONGEST_REST = 10000;

class LiveSource {
  constructor() {
    Object.assign(this, { about: {}, strip: {}, trials: [], isLive: true, revision: -1, epoch: null, pace: 1000 });
    this.answers = new Map(); // by address, for the revision they were asked at
    this.figures = new Map(); // kept over revisions: an older map is better than none
    this.heard = performance.now();
    this.isLost = false;
    this.busy = null;
    this.wanted = false;
    this.lastUpdate = -1e9;
    this.updateTook = 0;
  }

  start(changed, strip, lost) {
    Object.assign(this, { changed, showStrip: strip, showLost: lost });
    this.update().catch(() => {});
    this.listen();
    setInterval(() => this.watch(), 500);
  }

  // -- being told ----------------------------------------------------------------------------------------------------

  listen() {
    if (typeof EventSource === "undefined") return;
    this.events = new EventSource("api/events");
    this.events.addEventListener("tick", (event) => this.onTick(JSON.parse(event.data)));
    this.events.onerror = () => {
      // The browser would try again by itself, at its own pace and not after every kind of end; `watch` polls and reopens.
      this.events.close();
      this.events = null;
    };
  }

  onTick(tick) {
    this.heard = performance.now();
    this.strip = tick.strip;
    this.pace = tick.pace * 1000;
    if (this.isLost) {
      this.isLost = false;
      this.showLost(false);
    }
    this.showStrip();
    if (tick.epoch !== this.epoch || tick.revision !== this.revision) this.update().catch(() => {});
  }

  async watch() {
    if (document.hidden) {
      // A browser has few connections to a server; a page that nobody looks at gives its one back.
      if (this.events) this.events.close();
      this.events = null;
      this.heard = performance.now();
      return;
    }
    const silent = performance.now() - this.heard;
    if (silent > LOST_AFTER && !this.isLost) {
      this.isLost = true;
      this.showLost(true);
    }
    if (this.wanted) this.update().catch(() => {});
    const isDeaf = !this.events || silent > LOST_AFTER;
    if (!isDeaf || this.polling || performance.now() - (this.polled || 0) < POLL_EVERY) return;
    this.polling = true;
    try {
      this.onTick(await this.ask("api/tick"));
      if (this.events) this.events.close();
      this.listen();
    } catch {
      // still lost; the next round asks again
    } finally {
      this.polling = false;
      this.polled = performance.now();
    }
  }

  // -- asking --------------------------------------------------------------------------------------------------------

  async ask(address) {
    const response = await fetch(address, { signal: AbortSignal.timeout(20000), cache: "no-store", credentials: "same-origin" });
    if (!response.ok) throw new Error(`${response.status} for ${address}`);
    return response.json();
  }

  // One update at a time, and no faster than the server's pace and ours: it must not slow the search down that it shows.
  update() {
    this.wanted = true;
    if (this.busy) return this.busy;
    const rest = Math.max(this.pace, Math.min(LONGEST_REST, REST * this.updateTook));
    if (performance.now() - this.lastUpdate < rest) return Promise.resolve();
    this.wanted = false;
    this.lastUpdate = performance.now();
    this.busy = this.fetched().finally(() => { this.busy = null; });
    return this.busy;
  }

  async fetched() {
    const begun = performance.now();
    const known = this.epoch === null ? "" : `?since=${this.revision}&epoch=${encodeURIComponent(this.epoch)}`;
    const news = await this.ask(`api/study${known}`);
    if (news.whole) this.trials = [];
    for (const trial of news.trials) this.trials[trial.number] = trial;
    if (news.about) this.about = news.about;
    Object.assign(this, { strip: news.strip, revision: news.revision, epoch: news.epoch });
    this.heard = performance.now();
    this.answers.clear();
    await this.changed();
    this.updateTook = performance.now() - begun;
  }

  once(address) {
    if (!this.answers.has(address)) {
      const answer = this.ask(address).then(unrolled);
      answer.catch(() => this.answers.delete(address));
      this.answers.set(address, answer);
    }
    return this.answers.get(address);
  }

  get total() { return this.about.excerpt ? this.about.excerpt.n_all : this.trials.length; }
  // A page of the table where the server has more trials than it sends; null where all are here.
  async table(query) { return this.about.excerpt ? this.once(`api/table?${new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined))}`) : null; }
  series(name) { return this.once(`api/series/${name}`); }
  whole(n) { return this.once(`api/trial/${n}`); }
  figure(name) { return this.computed(`api/figure/${name}`); }
  near(n) { return this.computed(`api/near/${n}`); }
  compare() { return this.once("api/compare"); }
  drawing(n) { return `drawing/${n}.svg`; }
  nearKnown(n) { return this.figures.get(`api/near/${n}`); }
  figureKnown(name) { return this.figures.get(`api/figure/${name}`); }

  // Slow figures come from the server's worker; until then it says so.
  async computed(address) {
    for (let tries = 0; tries < 300; tries++) {
      const answer = unrolled(await this.ask(address));
      if (!answer.computing) {
        this.figures.set(address, answer);
        return answer;
      }
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    return { message: "the server did not compute it" };
  }
}

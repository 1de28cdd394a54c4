"use strict";
// Addresses, the strip on top, and putting pages in place. `#/trials?sort=value` is a page and its arguments.

const THEMES = ["system", "light", "dark"];

function address(page, query = {}) {
  const words = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  return `#/${page}${words.length ? `?${new URLSearchParams(words)}` : ""}`;
}

function go(page, query) {
  const to = address(page, query);
  if (location.hash !== to) {
    history.replaceState(null, "", to); // typing into a filter must not fill the browser's history
    show({ isMove: false });
  }
}

function asked() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [page, ...rest] = path.split("/");
  return { page: Object.hasOwn(PAGES, page) ? page : "overview", rest, query: Object.fromEntries(new URLSearchParams(query || "")) };
}

// -- the strip -------------------------------------------------------------------------------------------------------

function stripPart(name, ...value) {
  return el("div", {}, el("span", { class: "name" }, name), el("span", { class: "value" }, ...value));
}

function showStrip() {
  const { strip, about } = source;
  document.getElementById("name").textContent = about.name || "study";
  document.title = `${about.name || "study"} – nasbot`;
  document.getElementById("state").replaceChildren(strip.state ? badge(strip.state) : "");
  const states = Object.entries(strip.states || {});
  const causes = Object.entries(strip.causes || {});
  document.getElementById("strip").replaceChildren(...[
    strip.problem ? stripPart("problem", strip.problem) : null,
    stripPart(`elapsed${strip.budget ? ` (budget ${String(strip.budget).replace(/([\d.]+) seconds/, (_, seconds) => duration(Number(seconds)))})` : ""}`, duration(strip.elapsed)),
    isNumber(strip.left) ? stripPart("time left", duration(strip.left)) : null,
    stripPart("trials", String(strip.trials ?? 0), states.length ? ` (${states.map(([state, n]) => `${n} ${state}`).join(", ")})` : ""),
    causes.length ? stripPart("failures", causes.map(([cause, n]) => `${n} ${cause}`).join(", ")) : null,
    stripPart(`best ${about.metric && about.metric !== "value" ? about.metric : ""}`.trim(), ...(strip.best ? [trialLink(strip.best.trial, number(strip.best.value, 6)), ` after ${duration(strip.best.at)}`] : ["none yet"])),
    source.isLive ? stripPart("workers", isNumber(strip.workers) ? String(strip.workers) : "–") : null,
    source.isLive ? stripPart("last sign of life", isNumber(strip.sign_age) ? `${duration(Math.max(0, strip.sign_age))} ago` : "–") : null,
  ].filter(Boolean));
}

function showNav(page) {
  const nav = document.getElementById("nav");
  const links = Object.entries(PAGES).filter(([, { hidden }]) => !hidden)
    .map(([name, { title }]) => el("a", { href: `#/${name}`, "aria-current": name === page || (page === "trial" && name === "trials") ? "page" : null }, title));
  if (nav.dataset.page === page) return;
  nav.dataset.page = page;
  nav.replaceChildren(...links);
  const current = nav.querySelector("[aria-current]");
  if (current) nav.scrollLeft = current.offsetLeft - nav.offsetLeft - 40; // on a phone they do not fit beside each other
}

// -- pages -----------------------------------------------------------------------------------------------------------

let turn = 0; // of the latest call: an earlier one that ends later is dropped

async function show({ isMove }) {
  const mine = ++turn;
  const main = document.getElementById("main");
  const args = asked();
  showNav(args.page);
  if (isMove) main.replaceChildren(quiet("Loading…"));
  let nodes;
  try {
    nodes = await PAGES[args.page].show(source, args);
  } catch (error) {
    nodes = [quiet(`This page could not be shown: ${error.message}`)];
  }
  if (mine !== turn) return;
  replaced(main, nodes);
  if (isMove) {
    window.scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

// The new nodes instead of the old, with focus, cursor and opened details where they were.
function replaced(main, nodes) {
  const focused = main.contains(document.activeElement) ? document.activeElement : null;
  const at = focused && "selectionStart" in focused ? [focused.selectionStart, focused.selectionEnd] : null;
  const opened = new Map([...main.querySelectorAll("details[id]")].map((node) => [node.id, node.open]));
  const [left, top] = [window.scrollX, window.scrollY];
  main.style.minHeight = `${main.offsetHeight}px`; // or the page would jump while its charts are not painted yet
  main.replaceChildren(...nodes.flat(3).filter(Boolean));
  for (const node of main.querySelectorAll("details[id]")) if (opened.has(node.id)) node.open = opened.get(node.id);
  paintCharts(main);
  main.style.minHeight = "";
  window.scrollTo(left, top);
  const again = focused && focused.id && document.getElementById(focused.id);
  if (again) {
    again.focus({ preventScroll: true });
    if (at && at[0] !== null) again.setSelectionRange(at[0], at[1]);
  }
}

async function changed() {
  showStrip();
  const isLooking = document.querySelector(".tip:not([hidden])"); // a point is being pointed at: not from under the pointer
  if (isLooking && source.isLive) {
    setTimeout(() => { if (turn === waiting) changed(); }, 1000);
    const waiting = turn;
    return;
  }
  await show({ isMove: false });
}

function setTheme(theme) {
  const button = document.getElementById("theme");
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  button.textContent = { system: "◐", light: "☀", dark: "☾" }[theme];
  button.setAttribute("aria-label", `colours: ${theme === "system" ? "as the system" : theme}`);
  button.dataset.now = theme;
  try {
    localStorage.setItem("nasbot-theme", theme);
  } catch {
    // a file opened without storage: the choice lasts as long as the page
  }
}

function storedTheme() {
  try {
    const theme = localStorage.getItem("nasbot-theme");
    return THEMES.includes(theme) ? theme : "system";
  } catch {
    return "system";
  }
}

// Printed, the study is one document: all pages below each other, every trial in the table.
async function showAll() {
  const mine = ++turn;
  const main = document.getElementById("main");
  const parts = [];
  for (const [name, { show: page, hidden }] of Object.entries(PAGES)) {
    if (hidden) continue;
    const nodes = await page(source, { page: name, rest: [], query: {}, printing: true });
    parts.push(el("div", { class: parts.length ? "page-break" : null }, nodes.flat(3).filter(Boolean)));
  }
  if (mine === turn) replaced(main, parts);
}

const embedded = document.getElementById("nasbot-data");
const source = embedded ? new EmbeddedSource(JSON.parse(embedded.textContent)) : new LiveSource();

setTheme(storedTheme());
document.getElementById("theme").addEventListener("click", (event) => setTheme(THEMES[(THEMES.indexOf(event.currentTarget.dataset.now) + 1) % THEMES.length]));
window.addEventListener("hashchange", () => show({ isMove: true }));
window.addEventListener("beforeprint", () => { showAll(); });
window.addEventListener("afterprint", () => show({ isMove: false }));
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === width) return;
  width = window.innerWidth;
  show({ isMove: false });
});
document.getElementById("footer").append(embedded ? "A report made by nasbot; it is one file and asks nothing of the network." : "Live: this page only reads the study.");
source.start(changed, showStrip, (isLost) => { document.getElementById("lost").hidden = !isLost; });

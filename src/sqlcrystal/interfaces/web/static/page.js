/* The page's own script: asks with a stream, swaps fragments the server made, and turns keys into clicks.
   Everything works without it, too, by plain forms; nothing here builds HTML from text. */
"use strict";
const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const say = (text) => { find("#status").textContent = text; };
const alarm = (text) => { const box = find("#alert"); box.textContent = text; box.hidden = !text; };
document.documentElement.classList.add("js");

/* ── fragments: a form or link says what it replaces, the server renders it ─────────────────────────────────── */
function place(target, markup) {
  const made = document.createElement("template");
  made.innerHTML = markup; // rendered and escaped by our server, under a policy that runs no inline script
  const fresh = made.content.firstElementChild;
  target.replaceWith(fresh);
  prepare(fresh);
  const focus = find("[data-focus]", fresh);
  if (focus) focus.focus({ preventScroll: false });
  const words = find("[data-say]", fresh) || (fresh.matches("[data-say]") ? fresh : null);
  if (words) say(words.dataset.say);
  return fresh;
}

async function fetched(address, options = {}) {
  alarm("");
  const answer = await fetch(address, { ...options, headers: { "X-Fragment": "1", ...(options.headers || {}) } });
  if (answer.status === 401) { location.assign("/login"); throw new Error("logged out"); }
  if (!answer.ok) {
    let detail = `${answer.status} ${answer.statusText}`;
    try { detail = (await answer.json()).detail || detail; } catch { /* not JSON: the status has to do */ }
    throw new Error(typeof detail === "string" ? detail : JSON.stringify(detail));
  }
  return answer;
}

async function submitFragment(form, button) {
  const body = new URLSearchParams(new FormData(form, button));
  const target = find(form.dataset.swap);
  all("button", target).forEach((each) => { each.disabled = true; });
  try {
    const answer = await fetched(form.action, { method: "POST", body });
    if (answer.redirected || answer.headers.get("X-Location")) { location.assign(answer.headers.get("X-Location") || answer.url); return; }
    place(target, await answer.text());
  } catch (error) {
    all("button", target).forEach((each) => { each.disabled = false; });
    alarm(`Not done. ${error.message}`);
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.sure && !form.dataset.answered) {
    event.preventDefault();
    sure(form.dataset.sure, () => { form.dataset.answered = "1"; form.requestSubmit(event.submitter); });
    return;
  }
  if (form.matches("form.ask")) { event.preventDefault(); ask(form); return; }
  if (form.dataset.swap) { event.preventDefault(); submitFragment(form, event.submitter); }
});

function sure(question, then) {
  const dialog = find("#sure");
  find("p", dialog).textContent = question;
  dialog.returnValue = "";
  dialog.onclose = () => { if (dialog.returnValue === "yes") then(); };
  dialog.showModal();
}

/* ── asking ─────────────────────────────────────────────────────────────────────────────────────────────────── */
let asking = null;

async function* events(reader) {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const parts = text.replaceAll("\r\n", "\n").split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const lines = part.split("\n");
      const kind = lines.find((line) => line.startsWith("event: "));
      const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (kind && data) yield [kind.slice(7), JSON.parse(data)];
    }
  }
}

function stages(box) {
  const steps = all("ol.stages li", box);
  const begun = performance.now();
  const clock = find(".clock", box);
  const limit = box.dataset.limit;
  const timer = setInterval(() => {
    const seconds = (performance.now() - begun) / 1000;
    if (seconds > 20) clock.textContent = `Still running, ${Math.round(seconds)} s of at most ${limit} s. You may leave; it will be in History.`;
    else if (seconds > 5) clock.textContent = `${Math.round(seconds)} s`;
  }, 1000);
  return {
    reach(name) {
      const at = steps.findIndex((step) => step.dataset.stage === name);
      steps.forEach((step, index) => { step.className = index < at ? "done" : index === at ? "now" : step.className; });
    },
    end() { clearInterval(timer); },
  };
}

async function ask(form) {
  const field = find("textarea", form);
  if (!field.value.trim()) { field.focus(); return; }
  if (asking) asking.abort();
  const mine = asking = new AbortController();
  const made = find("#asking").content.cloneNode(true).firstElementChild;
  find("#answer").replaceWith(made);
  find(".asked", made).textContent = field.value;
  const progress = stages(made);
  const stop = find(".stop", made);
  let ticket = "";
  stop.addEventListener("click", async () => {
    stop.disabled = true;
    if (ticket) await fetch(`/api/asks/${encodeURIComponent(ticket)}/stop`, { method: "POST" }).catch(() => {});
    mine.abort();
  });
  progress.reach("cards");
  try {
    const body = JSON.stringify({ question: field.value, database: form.dataset.database, memory: form.dataset.memory === "yes" ? true : null });
    const answer = await fetched("/api/ask", { method: "POST", body, signal: mine.signal, headers: { "Content-Type": "application/json", Accept: "text/event-stream" } });
    for await (const [kind, data] of events(answer.body.getReader())) {
      if (kind === "begun") ticket = data.ticket;
      else if (kind === "place") find(".place", made).textContent = data.ahead ? `${data.ahead} ahead of you` : "";
      else if (kind === "cards") { progress.reach("sql"); find(".used", made).textContent = data.cards.length ? `With ${data.cards.length} card${data.cards.length === 1 ? "" : "s"}` : "No cards used"; }
      else if (kind === "sql") { progress.reach("rows"); if (data.sql) { find(".sql pre", made).textContent = data.sql; find(".sql", made).hidden = false; say("SQL ready"); } }
      else if (kind === "rows") progress.reach("repaired");
      else if (kind === "done") { await show(data.id, form); return; }
      else if (kind === "error") throw new Error(data.detail);
    }
    throw new Error("the connection ended before the answer did; look in History");
  } catch (error) {
    progress.end();
    if (!made.isConnected) return;
    const failed = find("#failed").content.cloneNode(true).firstElementChild;
    find(".engine", failed).textContent = mine.signal.aborted ? "Stopped. Nothing was banked." : error.message;
    made.replaceWith(failed);
    find("button", failed).addEventListener("click", () => form.requestSubmit());
    find("[tabindex]", failed).focus();
  } finally { progress.end(); if (asking === mine) asking = null; }
}

async function show(id, form) {
  const answer = await fetched(`/a/${encodeURIComponent(id)}`);
  const placed = place(find("#answer"), await answer.text());
  history.pushState({}, "", `/a/${encodeURIComponent(id)}`);
  document.title = `${placed.dataset.title} · sqlcrystal`;
  form.dataset.memory = "";
  const side = find("#side");
  if (side) place(side, await (await fetched(`/a/${encodeURIComponent(id)}?part=side`)).text());
  find("#answer h1, #answer h2").focus({ preventScroll: true });
}
addEventListener("popstate", () => location.reload());

/* ── the editor: runs what is written 400 ms after the last key, an older run is dropped ────────────────────── */
function editor(field) {
  const form = field.form, key = `draft ${location.pathname} ${form.action}`;
  const bank = find("[data-bank]", form);
  let timer, running;
  const run = async () => {
    if (running) running.abort();
    const mine = running = new AbortController();
    try {
      const body = new URLSearchParams({ sql: field.value, database: field.dataset.database });
      const answer = await fetched("/run", { method: "POST", body, signal: mine.signal });
      const placed = place(find(`#${field.dataset.rows}`), await answer.text());
      bank.disabled = placed.dataset.ran !== "yes";
    } catch (error) { if (!mine.signal.aborted) alarm(error.message); }
  };
  const draft = localStorage.getItem(key);
  if (draft) field.value = draft;
  field.addEventListener("input", () => { bank.disabled = true; localStorage.setItem(key, field.value); clearTimeout(timer); timer = setTimeout(run, 400); });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !bank.disabled) { event.preventDefault(); form.requestSubmit(bank); }
  });
  form.addEventListener("submit", () => localStorage.removeItem(key));
  run();
}

/* ── small things ───────────────────────────────────────────────────────────────────────────────────────────── */
async function copy(button) {
  const text = button.dataset.fetch ? await (await fetched(button.dataset.fetch)).text() : find(button.dataset.copy).textContent;
  await navigator.clipboard.writeText(text);
  say("Copied");
  const words = find("span", button), before = words.textContent;
  words.textContent = "Copied";
  setTimeout(() => { words.textContent = before; }, 1500);
}

document.addEventListener("click", (event) => {
  const target = event.target.closest("button, a, [data-fill]");
  if (!target) return;
  if (target.dataset.copy || target.dataset.fetch) copy(target).catch(() => alarm("The browser does not allow copying here."));
  else if (target.dataset.toggle) {
    for (const selector of target.dataset.toggle.split(",")) all(selector).forEach((each) => { each.hidden = !each.hidden; });
    if (target.hasAttribute("aria-pressed")) target.setAttribute("aria-pressed", String(target.getAttribute("aria-pressed") !== "true"));
    const opened = target.dataset.then && find(target.dataset.then);
    if (opened && !opened.closest("[hidden]")) { opened.focus(); if (opened.dataset.rows && !opened.dataset.live) { opened.dataset.live = "1"; editor(opened); } }
  } else if (target.dataset.fill) { const field = find("form.ask textarea"); field.value = target.dataset.fill; field.form.requestSubmit(); }
  else if (target.dataset.whole) { const box = target.closest(".sql"); box.classList.toggle("whole"); find("span", target).textContent = box.classList.contains("whole") ? "Show less" : "Show all"; }
  else if (target.dataset.dialog) find(target.dataset.dialog).showModal();
  else if (target.matches(".menu")) { const open = find("nav.main").classList.toggle("open"); target.setAttribute("aria-expanded", String(open)); }
  else if (target.matches(".theme")) theme(target);
  else if (target.dataset.again) { event.preventDefault(); const form = find("form.ask"); form.dataset.memory = target.dataset.again === "with" ? "yes" : ""; find("textarea", form).value = target.dataset.question; form.requestSubmit(); }
});

function theme(button) {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme || (dark ? "dark" : "light"), next = now === "dark" ? "light" : "dark";
  root.dataset.theme = next;
  document.cookie = `theme=${next}; path=/; max-age=31536000; samesite=strict`;
  button.setAttribute("aria-label", `Theme: ${next}`);
}

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
  if (event.target.matches("#letters")) localStorage.setItem("letters", event.target.checked ? "on" : "off");
});

/* ── keys: a control names its key; the handler only looks for it, so badge and deed cannot drift apart ──────── */
let prefix = "";
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const field = event.target.closest("input, textarea, select");
  if (event.key === "Escape") {
    if (asking) { const stop = find(".stop"); if (stop) stop.click(); }
    else if (field) field.blur();
    return;
  }
  if (event.target.matches("form.ask textarea") && event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); event.target.form.requestSubmit(); return; }
  if (field || find("dialog[open]") || localStorage.getItem("letters") === "off") return;
  const pressed = prefix ? `${prefix} ${event.key}` : event.key;
  prefix = "";
  if (event.key === "g" && pressed === "g") { prefix = "g"; setTimeout(() => { prefix = ""; }, 1200); return; }
  const control = all(`[data-key="${CSS.escape(pressed)}"]`).find((each) => !each.disabled && !each.closest("[hidden]"));
  if (!control) return;
  event.preventDefault();
  if (control.matches("textarea, input, select")) control.focus(); else control.click();
});

function prepare(root) {
  all("textarea.grow-with-text", root).forEach((field) => {
    const fit = () => { field.style.height = "auto"; field.style.height = `${Math.min(200, field.scrollHeight + 2)}px`; };
    field.addEventListener("input", fit);
    if (field.value) fit();
  });
  all("textarea[data-rows]", root).filter((field) => !field.closest("[hidden]")).forEach((field) => { field.dataset.live = "1"; editor(field); });
}
prepare(document);
/* The attribute autofocus would complain in the console where somebody was quicker than the page. */
const first = find("[data-first]");
if (first && document.activeElement === document.body) first.focus();
const letters = find("#letters");
if (letters) letters.checked = localStorage.getItem("letters") !== "off";
const token = find("#token");
if (token && location.hash.startsWith("#sqlc_")) { token.value = location.hash.slice(1); history.replaceState({}, "", location.pathname); token.form.requestSubmit(); }

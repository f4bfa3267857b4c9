/* Every page's script: swaps fragments the server made, and turns keys into clicks; asking.js asks with a stream.
   Everything works without it, too, by plain forms; nothing here builds HTML from text. */
"use strict";
const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const say = (text) => { find("#status").textContent = text; };
const alarm = (text) => { const box = find("#alert"); box.textContent = text; box.hidden = !text; };
document.documentElement.classList.add("js");
let asking = null; // what stops the question under way

/* ── fragments: a form or link says what it replaces, the server renders it ─────────────────────────────────── */
function place(target, markup) {
  const made = document.createElement("template");
  made.innerHTML = markup; // rendered and escaped by our server, under a policy that runs no inline script
  const fresh = made.content.firstElementChild;
  target.replaceWith(fresh);
  prepare(fresh);
  const focus = find("[data-focus]", fresh);
  if (focus) focus.focus({ preventScroll: false });
  const words = find("[data-say]", fresh);
  if (words) say(words.dataset.say);
  if (fresh.dataset.tab) document.title = `${fresh.dataset.tab} · sqlcrystal`;
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
    badge(answer);
  } catch (error) {
    all("button", target).forEach((each) => { each.disabled = false; });
    all(".wait", target).forEach((each) => { each.hidden = true; });
    alarm(`Not done. ${error.message}`);
  }
}

/* How many answers wait, in the bar at the top, as the server counted them after a verdict or an answer. */
function badge(answer) {
  const count = answer.headers.get("X-Waiting"), link = find('nav.main a[href="/queue"]');
  if (count === null || !link) return;
  const shown = find(".count", link) || link.appendChild(Object.assign(document.createElement("span"), { className: "count" }));
  shown.textContent = count;
  shown.hidden = count === "0";
}

function wait(form) {
  const line = find("#verdict .wait");
  if (!line) return;
  line.textContent = form.dataset.wait;
  line.hidden = false;
  say(form.dataset.wait);
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.sure && !form.dataset.answered) {
    event.preventDefault();
    sure(form.dataset.sure, () => { form.dataset.answered = "1"; form.requestSubmit(event.submitter); });
    return;
  }
  if (form.dataset.wait) wait(form);
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

/* ── the editor: runs what is written 400 ms after the last key, an older run is dropped ────────────────────── */
function editor(field) {
  const form = field.form, key = `draft ${new URL(form.action).pathname}`, given = field.defaultValue;
  const bank = find("[data-bank]", form), back = find(".draft", form);
  let timer, running;
  bank.disabled = true;
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
  if (draft && draft !== given) { field.value = draft; back.hidden = false; }
  find("[data-restart]", form).addEventListener("click", () => { field.value = given; localStorage.removeItem(key); back.hidden = true; bank.disabled = true; field.focus(); run(); });
  field.addEventListener("input", () => { bank.disabled = true; localStorage.setItem(key, field.value); clearTimeout(timer); timer = setTimeout(run, 400); });
  field.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) { event.preventDefault(); complete(field); return; }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !bank.disabled) { event.preventDefault(); form.requestSubmit(bank); }
  });
  form.addEventListener("submit", () => localStorage.removeItem(key));
  run();
}

/* Completes the name before the cursor from those of the schema; pressed again, it goes on to the next that fits. */
let completing = null;
function complete(field) {
  const names = (field.dataset.names || "").split(" "), end = field.selectionStart;
  if (!completing || completing.field !== field || completing.end !== end) {
    const typed = /\w*$/.exec(field.value.slice(0, end))[0];
    completing = { field, start: end - typed.length, typed, at: -1 };
  }
  const fitting = names.filter((name) => name && name.toLowerCase().startsWith(completing.typed.toLowerCase()));
  if (!fitting.length) { say("No table or column begins so"); completing = null; return; }
  completing.at = (completing.at + 1) % fitting.length;
  field.setRangeText(fitting[completing.at], completing.start, end, "end");
  completing.end = field.selectionStart;
  say(fitting[completing.at]);
  field.dispatchEvent(new Event("input"));
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

function toggle(control) {
  for (const selector of control.dataset.toggle.split(",")) all(selector).forEach((each) => { each.hidden = !each.hidden; });
  if (control.hasAttribute("aria-pressed")) control.setAttribute("aria-pressed", String(control.getAttribute("aria-pressed") !== "true"));
  const next = control.dataset.then && find(control.dataset.then);
  if (!next || next.closest("[hidden]")) return;
  next.focus();
  if (next.dataset.rows && !next.dataset.live) { next.dataset.live = "1"; editor(next); }
}

/* Table, bars or line: one is shown, and the key goes to the one after it. */
function look(control) {
  const ways = all("[data-look]", control.parentElement), next = ways[(ways.indexOf(control) + 1) % ways.length];
  const keyed = ways.find((way) => way.dataset.key), badge = find("kbd", control.parentElement);
  for (const way of ways) {
    way.setAttribute("aria-pressed", String(way === control));
    find(way.dataset.look).hidden = way !== control;
  }
  next.dataset.key = keyed.dataset.key;
  if (keyed !== next) delete keyed.dataset.key;
  next.append(" ", badge);
}

function askFor(question, memory, { send }) {
  const form = find("form.ask"), field = find("textarea", form);
  field.value = question;
  field.dispatchEvent(new Event("input"));
  form.dataset.memory = memory;
  if (send) form.requestSubmit(); else { field.focus(); field.select(); }
}

document.addEventListener("click", (event) => {
  all("details.choices[open]").filter((each) => !each.contains(event.target)).forEach((each) => { each.open = false; });
  const target = event.target.closest("button, a");
  if (!target || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const data = target.dataset, form = find("form.ask");
  if (data.copy || data.fetch) copy(target).catch(() => alarm("The browser does not allow copying here."));
  else if (data.toggle) { event.preventDefault(); toggle(target); }
  else if (data.look) look(target);
  else if (form && data.fill) { event.preventDefault(); askFor(data.fill, "", { send: true }); }
  else if (form && data.reword) { event.preventDefault(); askFor(data.reword, "", { send: false }); }
  else if (form && data.again) { event.preventDefault(); askFor(data.question, data.again === "with" ? "yes" : "no", { send: true }); }
  else if (data.whole) { const whole = target.closest(".sql").classList.toggle("whole"); find("span", target).textContent = whole ? "Show less" : "Show all"; target.setAttribute("aria-expanded", String(whole)); }
  else if (data.dialog) { const sheet = find(data.dialog); sheet.showModal(); find("[data-close]", sheet).focus(); }
  else if (target.matches(".menu")) menu(!find("#pages").classList.contains("open"));
  else if (target.matches(".theme")) theme(target);
});

function menu(open) {
  find("#pages").classList.toggle("open", open);
  find(".menu").setAttribute("aria-expanded", String(open));
}

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
  if (event.target.matches("#chosen [type=checkbox]")) countChosen();
});

function countChosen() {
  const words = find(".chosen-count");
  if (!words) return;
  const count = all("#chosen [type=checkbox]:checked").length;
  words.textContent = count ? `${count} chosen:` : words.dataset.none;
  all(".bulk button").forEach((each) => { each.disabled = !count; });
}

/* A list of rows: j and k move, x chooses; Enter opens, because a link has the focus. */
function moveInList(pressed) {
  const items = all("[data-item]"), at = items.findIndex((each) => each.contains(document.activeElement));
  if (!items.length || !["j", "k", "x"].includes(pressed)) return false;
  if (pressed === "x") { const box = at >= 0 && find("[type=checkbox]", items[at]); if (box) box.click(); return true; }
  const next = items[Math.max(0, Math.min(items.length - 1, at < 0 ? 0 : at + (pressed === "j" ? 1 : -1)))];
  find("a", next).focus();
  return true;
}

function escape(field) {
  const open = find("details.choices[open]"), stop = asking && find(".stop");
  if (stop) stop.click();
  else if (open) { open.open = false; find("summary", open).focus(); }
  else if (find("#pages.open")) { menu(false); find(".menu").focus(); }
  else if (field) field.blur();
}


/* ── keys: a control names its key; the handler only looks for it, so badge and deed cannot drift apart ──────── */
let prefix = "";
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const field = event.target.closest("input:not([type=checkbox]), textarea, select");
  if (event.key === "Escape") { if (!find("dialog[open]")) escape(field); return; }
  if (event.target.matches("form.ask textarea") && event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); event.target.form.requestSubmit(); return; }
  if (field || find("dialog[open]") || localStorage.getItem("letters") === "off") return;
  const pressed = prefix ? `${prefix} ${event.key}` : event.key;
  prefix = "";
  if (event.key === "g" && pressed === "g") { prefix = "g"; setTimeout(() => { prefix = ""; }, 1200); return; }
  const control = all(`[data-key="${CSS.escape(pressed)}"]`).find((each) => !each.disabled && !each.closest("[hidden]"));
  if (!control) { if (moveInList(pressed)) event.preventDefault(); return; }
  event.preventDefault();
  if (control.matches("textarea, input")) { control.focus(); control.select(); } else control.click();
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
const told = find("main [data-say]");
if (told && first && !told.closest("#answer")) say(told.dataset.say);
countChosen();
const letters = find("#letters");
if (letters) letters.checked = localStorage.getItem("letters") !== "off";
/* A link with a token logs in, also where the login page is open already and only the part after # changes. */
function logInByLink() {
  const token = find("#token");
  if (!token || !location.hash.startsWith("#sqlc_")) return;
  token.value = location.hash.slice(1);
  history.replaceState({}, "", location.pathname);
  token.form.requestSubmit();
}
addEventListener("hashchange", logInByLink);
logInByLink();

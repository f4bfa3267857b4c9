/* The Ask page: a question is streamed step by step, then what the server rendered is put in place. */
"use strict";

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
  const since = () => (performance.now() - begun) / 1000;
  const clock = find(".clock", box);
  const doing = { cards: "Looking for cards", sql: "The model writes SQL", rows: "Running it", repaired: "Checking what came back" };
  let now = null, reached = 0;
  const end = () => { if (now) { now.className = "done"; find(".time", now).textContent = `${(since() - reached).toFixed(1)} s`; } };
  const timer = setInterval(() => {
    const seconds = Math.round(since());
    if (seconds >= 20) clock.textContent = `Still running, ${seconds} s of at most ${box.dataset.limit} s. You may leave; it will be in History.`;
    else clock.textContent = `${now ? doing[now.dataset.stage] : "Waiting"}, ${seconds} s`;
  }, 1000);
  return {
    reach(name) {
      end();
      reached = since();
      now = steps.find((step) => step.dataset.stage === name) || null;
      if (now) now.className = "now";
    },
    end() { clearInterval(timer); end(); },
  };
}

function usedCards(cards) {
  const list = find("#side .used-cards ol");
  if (!list) return;
  find("#side .used-cards h2").textContent = `Cards used (${cards.length})`;
  for (const card of cards) {
    const item = find("#asking-card").content.cloneNode(true).firstElementChild;
    find("a", item).href = `/bank/${encodeURIComponent(card.id)}`;
    find("code", item).textContent = card.id.slice(0, 8);
    find(".near", item).textContent = `near ${card.score.toFixed(2)}`;
    find(".about", item).textContent = `“${card.question}”`;
    find(".note", item).textContent = `vouched for by ${card.by}`;
    list.append(item);
  }
}

function begin(form, question) {
  const made = find("#asking").content.cloneNode(true).firstElementChild;
  find("#answer").replaceWith(made);
  find(".asked", made).textContent = question;
  document.title = "Asking · sqlcrystal";
  const side = find("#side"), old = side && find(".used-cards", side), cards = find("#asking-side").content.cloneNode(true);
  if (old) old.replaceWith(cards); else if (side) side.prepend(cards);
  find(".asked", made).focus({ preventScroll: true });
  return made;
}

/* An answer goes on without its reader: where the stream broke, look for it among the latest answers. */
async function findAgain(form, question, begun, made, signal) {
  find(".clock", made).textContent = "Reconnecting. Your question keeps running.";
  say("Reconnecting. Your question keeps running.");
  for (let tries = 0; tries < Number(made.dataset.limit) / 2 && !signal.aborted; tries += 1) {
    await new Promise((resolve) => { setTimeout(resolve, 2000); });
    const reply = await fetch(`/api/answers?limit=10&database=${encodeURIComponent(form.dataset.database)}`, { signal }).catch(() => null);
    const found = reply && reply.ok ? (await reply.json()).find((past) => (past.follows ? past.follows.asked : past.question) === question.trim() && Date.parse(past.at) >= begun - 2000) : null;
    if (found) return found.id;
  }
  throw new Error("The connection ended before the answer did; look in History.");
}

/* The first answer is shown while it is looked at again, unless that takes no time: it may be all that was wanted. */
const DRAFT_ROWS = 10, DRAFT_AFTER = 600;
function draft(data, made) {
  const box = find(".first-answer", made), table = find("table", box);
  find("p", box).textContent = data.error ? `First answer, looked at again: it does not run. ${data.error}` : `First answer, looked at again: ${data.rows.length || "no"} row${data.rows.length === 1 ? "" : "s"}.`;
  for (const row of data.rows.length ? [data.columns, ...data.rows.slice(0, DRAFT_ROWS)] : []) {
    const line = table.insertRow();
    for (const cell of row) line.insertCell().textContent = cell === null ? "NULL" : String(cell);
  }
  find(".rows", box).hidden = !data.rows.length;
  box.hidden = false;
}

class Told extends Error {}
async function follow(answer, made, progress, known) {
  for await (const [kind, data] of events(answer.body.getReader())) {
    if (kind === "begun") known.ticket = data.ticket;
    else if (kind === "place") find(".place", made).textContent = data.ahead ? `${data.ahead} ahead of you` : "";
    else if (kind === "read") { const read = find(".read", made); read.hidden = false; read.textContent = data.follows ? `Read as: ${data.question}` : "A new topic"; }
    else if (kind === "cards") { progress.reach("sql"); usedCards(data.cards); find(".used", made).textContent = data.cards.length ? `with ${data.cards.length} card${data.cards.length === 1 ? "" : "s"}` : "no cards used"; }
    else if (kind === "writing") find(".sql pre", made).textContent = data.sql;
    else if (kind === "sql") { progress.reach("rows"); if (data.sql) { find(".sql pre", made).textContent = data.sql; say("SQL ready"); } }
    else if (kind === "rows") { progress.reach("repaired"); setTimeout(() => draft(data, made), DRAFT_AFTER); }
    else if (kind === "done") return data.id;
    else if (kind === "error") throw new Told(data.detail);
  }
  return "";
}

async function ask(form) {
  const field = find("textarea", form), question = field.value, begun = Date.now();
  if (!question.trim()) { field.focus(); return; }
  if (asking) asking.abort();
  const mine = asking = new AbortController(), known = { ticket: "" };
  const made = begin(form, question), progress = stages(made), stop = find(".stop", made);
  stop.addEventListener("click", async () => {
    stop.disabled = true;
    if (known.ticket) await fetch(`/api/asks/${encodeURIComponent(known.ticket)}/stop`, { method: "POST" }).catch(() => {});
    mine.abort();
  });
  progress.reach("cards");
  try {
    const goesOn = find("[name=follow]", form), earlier = goesOn && goesOn.checked && goesOn.value ? goesOn.value : null;
    const body = JSON.stringify({ question, follow: earlier, database: form.dataset.database, memory: { yes: true, no: false }[form.dataset.memory || form.dataset.usual] ?? null });
    const answer = await fetched("/api/ask", { method: "POST", body, signal: mine.signal, headers: { "Content-Type": "application/json", Accept: "text/event-stream" } });
    const id = await follow(answer, made, progress, known).catch((error) => { if (error instanceof Told || mine.signal.aborted) throw error; return ""; });
    await show(id || await findAgain(form, question, begun, made, mine.signal), form);
  } catch (error) {
    if (!made.isConnected) return;
    const failed = find("#failed").content.cloneNode(true).firstElementChild;
    find(".asked", failed).textContent = question;
    find(".what", failed).textContent = mine.signal.aborted ? "Stopped. Nothing was banked." : "It could not be answered.";
    find(".engine", failed).textContent = mine.signal.aborted ? "" : error.message;
    made.replaceWith(failed);
    all("#side .coming").forEach((each) => each.remove());
    document.title = "No answer · sqlcrystal";
    find("button", failed).addEventListener("click", () => { field.value = question; form.requestSubmit(); });
    find("[tabindex]", failed).focus();
    if (!mine.signal.aborted) offerNear(failed, question, form.dataset.database).catch(() => {});
  } finally { progress.end(); if (asking === mine) asking = null; form.dataset.memory = ""; }
}

/* Where only recorded questions can be answered: those that read like the one that was asked. */
async function offerNear(failed, question, database) {
  const box = find("[data-near]", failed);
  if (!box) return;
  const reply = await fetched(`${box.dataset.near}?${new URLSearchParams({ question, database })}`);
  place(box, await reply.text());
}

async function show(id, form) {
  const answer = await fetched(`/a/${encodeURIComponent(id)}`);
  const placed = place(find("#answer"), await answer.text());
  badge(answer);
  history.pushState({}, "", `/a/${encodeURIComponent(id)}`);
  const field = find("textarea", form);
  field.value = "";
  field.style.height = "";
  field.placeholder = field.placeholder.replace("a question", "something else");
  const goesOn = find("[name=follow]", form);
  if (goesOn) { goesOn.value = id; goesOn.closest("label").hidden = false; }
  find("h1", placed).focus({ preventScroll: true });
  say((find(".rows-head h2", placed) || find(".banner.bad p", placed) || find("h1", placed)).textContent);
  const side = find("#side");
  if (side) place(side, await (await fetched(`/a/${encodeURIComponent(id)}?part=side`)).text());
}

addEventListener("popstate", () => location.reload());

// A grid at work: the state of its runs every few seconds, and the board anew once one of them has ended.
"use strict";
(() => {
  const EVERY_MS = 2000, HIDDEN_MS = 30000, PATIENCE_MS = 90000; // a first board may take the server a minute
  let looking = false;
  const live = document.querySelector("[data-live]"), table = document.getElementById("t-live"), body = table.tBodies[0];
  const part = (name) => live.querySelector(`[data-live-part="${name}"]`);
  const headings = [...table.tHead.querySelectorAll("button")];
  const steps = headings.findIndex((heading) => heading.textContent === "Step"); // beside a bar
  const rows = new Map();
  const idOf = (section) => section.getAttribute("aria-labelledby");
  const sectionsOf = (page) => [...page.querySelectorAll("main > section:not([data-live])")];
  const sources = new Map(sectionsOf(document).map((section) => [idOf(section), section.outerHTML])); // as they came
  let shown = live.dataset.board, fetched = null, answeredAt = new Date(), timer = 0;

  // -- the runs

  function write(element, text) {
    if (element.textContent !== text) element.textContent = text; // never markup: names and errors are others' words
  }

  function makeRow() {
    const row = document.createElement("tr");
    headings.forEach((heading, index) => {
      const cell = document.createElement(index ? "td" : "th");
      if (!index) cell.scope = "row";
      else if (heading.dataset.kind === "text") cell.className = "text";
      row.append(cell);
    });
    const bar = document.createElement("progress");
    row.cells[steps].append(document.createElement("span"), bar);
    bar.setAttribute("aria-label", "share of the steps done");
    return row;
  }

  function fillRow(row, run) {
    row.dataset.state = run.state;
    run.cells.forEach(([text, number], index) => {
      const cell = row.cells[index];
      write(index === steps ? cell.firstChild : cell, text);
      if (number === null) delete cell.dataset.sort;
      else cell.dataset.sort = number;
    });
    row.cells[steps].lastChild.value = run.share;
  }

  function showRuns(runs) {
    const known = new Set(runs.map((run) => run.id));
    for (const [id, row] of rows) if (!known.has(id)) row.remove(), rows.delete(id);
    for (const run of runs) {
      if (!rows.has(run.id)) rows.set(run.id, makeRow());
      fillRow(rows.get(run.id), run);
    }
    const wanted = runs.map((run) => rows.get(run.id)), isSorted = table.querySelector("th[aria-sort$='ending']");
    if (wanted.some((row, index) => (isSorted ? !row.isConnected : body.rows[index] !== row))) body.append(...wanted);
  }

  function show(state) {
    answeredAt = new Date();
    part("lost").hidden = true;
    if (state.summary) write(part("summary"), state.summary);
    write(part("hours"), state.hours);
    const troubles = state.troubles.map((text) => {
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    });
    part("troubles").replaceChildren(...troubles);
    part("troubles").hidden = !troubles.length;
    if (state.summary) showRuns(state.runs);
    document.dispatchEvent(new CustomEvent("renewed", { detail: { parcels: [] } }));
  }

  // -- the board

  function isInUse(old) {
    const changing = old.querySelector("table[id] tbody") || old;
    return changing.contains(document.activeElement);
  }

  function replaceParcels(page) {
    const changed = [];
    const old = new Map([...document.querySelectorAll("script[data-parcel]")].map((one) => [one.dataset.parcel, one]));
    for (const one of page.querySelectorAll("script[data-parcel]")) {
      const known = old.get(one.dataset.parcel);
      old.delete(one.dataset.parcel);
      if (known?.textContent === one.textContent) continue;
      changed.push(one.dataset.parcel);
      if (known) known.textContent = one.textContent;
      else document.body.append(one);
    }
    for (const [name, gone] of old) gone.remove(), changed.push(name);
    return changed;
  }

  // What did not change stays as it is, with what was typed, chosen and opened there.
  function renew(page) {
    const found = sectionsOf(page), main = document.querySelector("main");
    const oldOf = (section) => main.querySelector(`section[aria-labelledby="${CSS.escape(idOf(section))}"]`);
    const fresh = found.filter((section) => sources.get(idOf(section)) !== section.outerHTML);
    const panel = document.getElementById("runs");
    if (!panel.hidden || fresh.some((section) => oldOf(section) && isInUse(oldOf(section)))) return false;
    document.querySelector("header").replaceWith(page.querySelector("header"));
    const changed = replaceParcels(page), known = new Set(found.map(idOf));
    for (const section of sectionsOf(document)) if (!known.has(idOf(section))) section.remove();
    let before = live;
    for (const section of found) {
      const old = oldOf(section), source = section.outerHTML, table = section.querySelector("table[id]");
      if (!old) before.after(section);
      else if (sources.get(idOf(section)) !== source) {
        if (table && old.querySelector("table[id]")) old.querySelector("table[id]").tBodies[0].replaceWith(table.tBodies[0]);
        else old.replaceWith(section);
      }
      sources.set(idOf(section), source);
      before = main.contains(section) ? section : old;
    }
    document.dispatchEvent(new CustomEvent("renewed", { detail: { parcels: changed } }));
    return true;
  }

  async function renewBoard(mark) {
    if (!mark || mark === shown) return;
    if (fetched?.mark !== mark) {
      const text = await (await ask("./")).text();
      fetched = { mark, page: new DOMParser().parseFromString(text, "text/html") };
    }
    if (renew(fetched.page)) shown = mark;
  }

  // -- the server

  async function ask(place) {
    const patience = new AbortController(); // a dead tunnel answers nothing at all
    const alarm = setTimeout(() => patience.abort(), PATIENCE_MS);
    const answer = await fetch(place, { cache: "no-cache", signal: patience.signal }).finally(() => clearTimeout(alarm));
    if (!answer.ok) throw new Error(await answer.text());
    return answer;
  }

  async function look() {
    if (looking) return;
    looking = true;
    clearTimeout(timer);
    try {
      const state = await (await ask(live.dataset.live)).json();
      show(state);
      await renewBoard(state.board);
    } catch (error) {
      const since = answeredAt.toLocaleTimeString();
      write(part("lost"), `No answer since ${since}: the grid has ended, or was stopped. What stands here is from then.`);
      part("lost").hidden = false;
    }
    looking = false;
    timer = setTimeout(look, document.hidden ? HIDDEN_MS : EVERY_MS);
  }

  document.addEventListener("visibilitychange", () => document.hidden || look());
  look();
})();

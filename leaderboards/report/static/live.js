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
    document.dispatchEvent(new CustomEvent("renewed", { detail: { changed: [] } }));
  }

  // -- the board

  async function renewBoard(mark) {
    if (!mark || mark === shown) return;
    if (fetched?.mark !== mark) {
      const text = await (await ask("./")).text();
      fetched = { mark, page: new DOMParser().parseFromString(text, "text/html") };
    }
    if (renew(fetched.page)) shown = mark; // else somebody is at work in what has changed
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
  write(part("summary"), "Reading the runs…");
  look();
})();

// A grid at work: its state and that of its runs every few seconds, the board anew once a run has ended, and how it ended.
"use strict";
(() => {
  const EVERY_MS = 2000, HIDDEN_MS = 30000;
  const SVG = "http://www.w3.org/2000/svg", LONG = 160; // characters, of which the first stand before the others
  const live = document.querySelector("[data-live]"), table = document.getElementById("t-live"), body = table.tBodies[0];
  const part = (name) => live.querySelector(`[data-live-part="${name}"]`);
  const headings = [...table.tHead.querySelectorAll("button")];
  const column = (name) => headings.findIndex((heading) => heading.textContent === name);
  const steps = column("Step"), losses = column("Loss"); // beside a bar, and a curve
  const rows = new Map();
  let looking = false, ended = false, settled = false, shown = live.dataset.board, fetched = null, answeredAt = new Date(), timer = 0;

  // -- the runs

  function make(name, ...children) {
    const element = document.createElement(name);
    element.append(...children); // never markup: names and errors are others' words
    return element;
  }

  function write(element, text, most = LONG) {
    if (element.said === text) return; // what somebody has opened stays open
    element.said = text;
    const start = text.slice(0, most).split("\n")[0];
    element.replaceChildren(start === text ? text : make("details", make("summary", `${start}…`), text));
  }

  function makeRow() {
    const row = make("tr", ...headings.map((_, index) => make(index ? "td" : "th")));
    row.cells[0].scope = "row";
    headings.forEach((heading, index) => index && heading.dataset.kind === "text" && (row.cells[index].className = "text"));
    const bar = make("progress"), plot = document.createElementNS(SVG, "svg");
    bar.setAttribute("aria-label", "share of the steps done");
    plot.setAttribute("viewBox", "0 0 100 14");
    plot.setAttribute("class", "plot");
    plot.setAttribute("aria-hidden", "true");
    row.cells[steps].append(make("span"), bar);
    row.cells[losses].append(make("span"), plot);
    return row;
  }

  function fillRow(row, run) {
    row.dataset.state = run.state;
    row.toggleAttribute("data-silent", run.is_silent);
    run.cells.forEach(([text, number], index) => {
      const cell = row.cells[index];
      write([steps, losses].includes(index) ? cell.firstChild : cell, text);
      if (number === null) delete cell.dataset.sort;
      else cell.dataset.sort = number;
    });
    row.cells[steps].lastChild.value = run.share;
    if (!run.curves.length) return; // it has ended: its curve stays
    const paths = run.curves.map((curve) => {
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("d", curve);
      return path;
    });
    row.cells[losses].lastChild.replaceChildren(...paths);
  }

  // A column that no run fills is left out, and so is its box among those that leave columns out.
  function hideEmpty(runs) {
    headings.forEach((_, index) => {
      const box = live.querySelector(`[data-column="${index - 1}"]`);
      if (!box) return;
      box.parentElement.hidden = runs.every((run) => !run.cells[index][0]);
      for (const row of table.rows) row.cells[index].hidden = box.parentElement.hidden || !box.checked;
    });
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
    hideEmpty(runs);
  }

  function show(state) {
    answeredAt = new Date();
    ended = Boolean(state.end);
    showLoss("");
    write(part("hours"), state.hours);
    part("troubles").replaceChildren(...state.troubles.map((text) => make("li", text)));
    part("troubles").hidden = !state.troubles.length;
    if (state.summary) {
      write(part("summary"), state.summary);
      write(part("end"), state.end, 1000);
      part("end").classList.toggle("whole", state.is_whole);
      part("end").hidden = !ended;
      part("share").value = state.share;
      part("share").hidden = false;
      showRuns(state.runs);
    }
    document.dispatchEvent(new CustomEvent("renewed"));
  }

  function showLoss(text) {
    write(part("lost"), text);
    part("lost").hidden = !text;
    live.classList.toggle("gone", Boolean(text));
  }

  // -- the board

  async function renewBoard(mark) {
    if (!mark || mark === shown) return;
    const answer = await ask("./"), tag = answer.headers.get("ETag");
    if (fetched?.tag !== tag) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      fetched = { tag, page, mark: page.querySelector("[data-live]").dataset.board };
    }
    if (fetched.mark !== shown && renew(fetched.page)) shown = fetched.mark; // else somebody is at work in what has changed
  }

  // -- the server

  async function look() {
    if (looking) return;
    looking = true;
    clearTimeout(timer);
    try {
      const state = await (await ask(live.dataset.live)).json();
      show(state);
      await renewBoard(state.board);
      settled = ended && shown === state.board;
    } catch (error) {
      const since = answeredAt.toLocaleTimeString(); // a grid that has said its end needs to say no more
      if (!ended) showLoss(`No answer since ${since}: the grid was killed with its machine, or cannot be reached. What stands here is from then.`);
    }
    looking = false;
    timer = setTimeout(look, document.hidden || settled ? HIDDEN_MS : EVERY_MS);
  }

  document.addEventListener("visibilitychange", () => document.hidden || look());
  write(part("summary"), "Reading the runs…");
  look();
})();

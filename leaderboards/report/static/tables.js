// Tables are sorted by their headings, filtered by words and shown without the columns that are not wanted.
"use strict";
(() => {
  const key = (row, index, kind) => {
    const cell = row.cells[index];
    if (kind === "number") return cell.dataset.sort === undefined ? NaN : Number(cell.dataset.sort);
    return cell.textContent.trim();
  };

  function compare(a, b) {
    if (typeof a === "string") return a.localeCompare(b, "en", { numeric: true });
    return a - b;
  }

  function sort(heading) {
    const descending = heading.getAttribute("aria-sort") === "ascending";
    for (const other of heading.parentElement.cells) if (other.ariaSort) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    order(heading);
  }

  function order(heading) {
    const body = heading.closest("table").tBodies[0], index = heading.cellIndex;
    const descending = heading.getAttribute("aria-sort") === "descending";
    const kind = heading.querySelector("button").dataset.kind;
    const keyed = [...body.rows].map((row) => [key(row, index, kind), row]);
    keyed.sort(([a], [b]) => {
      if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b); // what has no number stays last
      return descending ? compare(b, a) : compare(a, b);
    });
    body.append(...keyed.map(([, row]) => row));
  }

  function filter(field) {
    const table = document.getElementById(field.dataset.filter);
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    const shown = rows.filter((row) => !row.hidden).length;
    const said = document.querySelector(`[data-found="${field.dataset.filter}"]`);
    said.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  }

  function show(box) {
    const table = document.getElementById(box.dataset.of);
    const index = Number(table.dataset.keys) + Number(box.dataset.column);
    for (const row of table.rows) if (row.cells[index]) row.cells[index].hidden = !box.checked;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.sort");
    if (button) sort(button.closest("th"));
  });
  document.addEventListener("input", (event) => {
    if (event.target.dataset.filter) filter(event.target);
    if (event.target.dataset.column) show(event.target);
  });
  function restore() {
    document.querySelectorAll("th[aria-sort$='ending']").forEach(order);
    document.querySelectorAll("[data-filter]").forEach((field) => field.value && filter(field));
    document.querySelectorAll("[data-column]:not(:checked)").forEach(show);
  }
  restore(); // a browser that restores a form's fields after a reload fires no event
  document.addEventListener("renewed", restore);
})();

// The runs behind a number, beside it while it is pointed at or has the focus; a click keeps them open.
"use strict";
(() => {
  const panel = document.createElement("div");
  Object.assign(panel, { id: "runs", hidden: true });
  panel.setAttribute("role", "dialog");
  document.querySelector("main").append(panel);
  let opener = null, isKept = false, closing = 0;

  function element(name, text = "", children = []) {
    const made = document.createElement(name);
    made.textContent = text; // never markup: names and errors are others' words
    made.append(...children);
    return made;
  }

  function fill(button, columns, cell) {
    const cells = button.closest("tr").cells, heading = button.closest("table").tHead.rows[0].cells;
    const column = heading[button.closest("td").cellIndex].textContent.trim();
    const name = `Runs behind ${cells[0].textContent.trim()}, ${column}`;
    panel.setAttribute("aria-label", name);
    const close = element("button", "Close");
    Object.assign(close, { type: "button", className: "close" });
    close.addEventListener("click", () => hide(true));
    const head = element("thead", "", [element("tr", "", columns.map((text) => {
      const th = element("th", text === "metric" ? cell.metric : text);
      th.scope = "col";
      return th;
    }))]);
    const lines = cell.runs.map((run) => element("tr", "", run.map((text) => element("td", text))));
    const table = element("table", "", [element("caption", name), head, element("tbody", "", lines)]);
    const problems = cell.problems.map((text) => element("p", text));
    const none = cell.runs.length ? [] : [element("p", "No run is shown here yet.")];
    const again = element("p", `${cell.run} again: `, [element("code", cell.command)]);
    panel.replaceChildren(close, table, ...none, ...problems, again);
  }

  function place(button) {
    const at = button.getBoundingClientRect(), width = document.documentElement.clientWidth;
    const frame = panel.offsetParent ? panel.offsetParent.getBoundingClientRect() : { left: 0, top: 0 };
    panel.style.left = "0"; // its full width, before it is measured
    const left = Math.max(8, Math.min(at.left, width - panel.offsetWidth - 8));
    const below = at.bottom + 4, above = at.top - panel.offsetHeight - 4;
    const top = below + panel.offsetHeight > innerHeight && above > 0 ? above : below;
    const scrolled = panel.offsetParent === document.body || !panel.offsetParent;
    panel.style.left = `${left + (scrolled ? scrollX : -frame.left)}px`;
    panel.style.top = `${top + (scrolled ? scrollY : -frame.top)}px`;
  }

  async function show(button) {
    clearTimeout(closing);
    if (opener === button && !panel.hidden) return;
    hide(false);
    opener = button;
    const { columns, cells } = await embedded.data("runs");
    if (opener !== button) return; // another was pointed at meanwhile
    fill(button, columns, cells[Number(button.dataset.runs)]);
    panel.hidden = false;
    place(button);
    button.setAttribute("aria-expanded", "true");
  }

  function hide(returnsFocus) {
    if (opener) opener.setAttribute("aria-expanded", "false");
    const left = opener;
    panel.hidden = true;
    isKept = false;
    opener = null;
    if (returnsFocus && left) {
      isReturning = true;
      left.focus();
      isReturning = false;
    }
  }

  let isReturning = false;
  const valueOf = (event) => event.target instanceof Element && event.target.closest("button[data-runs]");
  const hideSoon = () => {
    clearTimeout(closing);
    if (!isKept) closing = setTimeout(() => hide(false), 250);
  };
  document.addEventListener("mouseover", (event) => {
    const button = valueOf(event);
    if (button && !isKept) show(button);
    else if (panel.contains(event.target)) clearTimeout(closing);
  });
  document.addEventListener("mouseout", (event) => {
    if (valueOf(event) || panel.contains(event.target)) hideSoon();
  });
  document.addEventListener("focusin", (event) => {
    const button = valueOf(event);
    if (button && !isReturning) show(button);
    else if (!panel.contains(event.target)) hideSoon();
  });
  document.addEventListener("click", async (event) => {
    const button = valueOf(event);
    if (button) {
      if (isKept && opener === button) return hide(true);
      await show(button);
      isKept = true;
      panel.querySelector(".close").focus();
    } else if (!panel.contains(event.target)) hide(false);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panel.hidden) hide(true);
  });
})();

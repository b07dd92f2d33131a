// A newer state of this page takes its place, without a reload. What did not change stays as it is, with what was typed,
// chosen and opened there.
"use strict";
window.renew = (() => {
  const idOf = (section) => section.getAttribute("aria-labelledby");
  const sectionsOf = (page) => [...page.querySelectorAll("main > section:not([data-live])")];
  const headerOf = (page) => page.querySelector("body > header");
  const main = document.querySelector("main"), live = document.querySelector("[data-live]");
  const sources = new Map(sectionsOf(document).map((section) => [idOf(section), section.outerHTML])); // as they came
  let header = headerOf(document).outerHTML;

  const stays = (one) => one.closest(".tools, thead"); // of a section that is filled anew
  const isInUse = (old) => old.contains(document.activeElement) && !stays(document.activeElement);

  function replaceHeader(page) {
    const fresh = headerOf(page), source = fresh.outerHTML;
    if (source === header) return;
    headerOf(document).replaceWith(fresh);
    header = source;
  }

  function replaceEmbedded(page) {
    document.querySelectorAll("script[data-embedded]").forEach((old) => old.remove());
    document.body.append(...page.querySelectorAll("script[data-embedded]"));
  }

  function place(section, before) {
    if (before) before.after(section);
    else main.prepend(section);
    return section;
  }

  // A table of the same columns keeps its headings and what stands above it; returns what is shown now.
  function fill(old, section) {
    const table = section.querySelector("table[id]"), known = old.querySelector("table[id]");
    if (table?.tHead.textContent !== known?.tHead.textContent || !table) return old.replaceWith(section), section;
    known.caption.replaceWith(table.caption);
    known.tBodies[0].replaceWith(table.tBodies[0]);
    const frames = [...old.children].filter((one) => one.matches(".tools, .scroll"));
    for (const one of [...old.children]) if (!frames.includes(one)) one.remove();
    for (const one of [...section.children]) {
      if (one.matches(".tools, .scroll")) old.append(frames.shift());
      else old.append(one);
    }
    return old;
  }

  // Returns whether it was done: not while somebody is at work in what has changed.
  return (page) => {
    const found = sectionsOf(page);
    const oldOf = (section) => main.querySelector(`section[aria-labelledby="${CSS.escape(idOf(section))}"]`);
    const fresh = found.filter((section) => sources.get(idOf(section)) !== section.outerHTML);
    const panel = document.getElementById("runs");
    if ((panel && !panel.hidden) || fresh.some((section) => oldOf(section) && isInUse(oldOf(section)))) return false;
    if (headerOf(page).outerHTML !== header && headerOf(document).contains(document.activeElement)) return false;
    replaceHeader(page);
    replaceEmbedded(page);
    const known = new Set(found.map(idOf));
    for (const section of sectionsOf(document)) if (!known.has(idOf(section))) section.remove();
    let before = live;
    for (const section of found) {
      const old = oldOf(section), source = section.outerHTML;
      if (!old) before = place(section, before);
      else before = sources.get(idOf(section)) === source ? old : fill(old, section);
      sources.set(idOf(section), source);
    }
    document.dispatchEvent(new CustomEvent("renewed"));
    return true;
  };
})();

// Ask the server for a page or file; an Error where it has no answer.
window.ask = async (place) => {
  const patience = new AbortController(); // a dead tunnel answers nothing at all
  const alarm = setTimeout(() => patience.abort(), 90000); // a first board may take a minute
  const answer = await fetch(place, { cache: "no-cache", signal: patience.signal }).finally(() => clearTimeout(alarm));
  if (!answer.ok) throw new Error(await answer.text());
  return answer;
};

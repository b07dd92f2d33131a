// Charts are drawn by Vega-Lite, which starts when the first of them is scrolled to.
"use strict";
(() => {
  const views = new Map();
  let library = null;

  function start() {
    library ??= embedded.text("charts-library").then((text) => {
      const script = document.createElement("script");
      script.textContent = text;
      document.head.append(script);
    });
    return library;
  }

  function look() {
    const styles = getComputedStyle(document.documentElement);
    const [ink, quiet, line] = ["--ink", "--quiet", "--line"].map((name) => styles.getPropertyValue(name).trim());
    return {
      background: "transparent", font: "system-ui, sans-serif", view: { stroke: line }, legend: { disable: true },
      axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: quiet, tickColor: quiet, labelFontSize: 12, titleFontSize: 13 },
      header: { labelColor: ink, titleColor: ink }, title: { color: ink }, text: { color: ink },
    };
  }

  const linesOf = (figure) => [...figure.querySelectorAll("[data-line]:checked")].map((box) => box.dataset.line);

  async function draw(figure) {
    const [spec] = await Promise.all([embedded.data(figure.dataset.chart), start()]);
    const canvas = figure.querySelector(".canvas");
    views.get(figure)?.finalize();
    canvas.replaceChildren();
    const chart = await vegaEmbed(canvas, spec, { actions: false, logLevel: 1, renderer: "svg", config: look(), tooltip: { theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light" } });
    views.set(figure, chart.view);
    update(figure);
  }

  async function update(figure) {
    const view = views.get(figure), metric = figure.querySelector("[data-signal]");
    if (!view) return;
    view.signal("shown", linesOf(figure));
    if (metric) view.signal("metric", metric.value);
    await view.runAsync();
  }

  async function zoom(figure, factor) {
    const view = views.get(figure);
    if (!view) return;
    for (const [axis, field] of [["x", "x"], ["y", "ours"]]) { // Vega-Lite names a selection's signals by the fields
      const [low, high] = view.scale(axis).domain(), isLog = view.scale(axis).type === "log";
      const [from, to] = isLog ? [Math.log(low), Math.log(high)] : [low, high];
      const reach = ((to - from) * factor) / 2, middle = (from + to) / 2;
      const ends = [middle - reach, middle + reach];
      view.signal(`zoom_${field}`, isLog ? ends.map(Math.exp) : ends);
    }
    await view.runAsync();
  }

  document.addEventListener("input", (event) => {
    const figure = event.target.closest("figure.chart");
    if (figure) update(figure);
  });
  document.addEventListener("click", async (event) => {
    const figure = event.target.closest("figure.chart"), button = event.target.closest("button");
    if (!figure || !button) return;
    if (button.dataset.zoom) zoom(figure, button.dataset.zoom === "in" ? 0.5 : 2);
    if (button.dataset.svg) {
      if (!views.has(figure)) await draw(figure);
      embedded.save(await views.get(figure).toSVG(), button.dataset.svg, "image/svg+xml");
    }
  });
  const figures = () => [...document.querySelectorAll("figure.chart")];
  embedded.whenSeen(figures(), draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => [...views.keys()].forEach(draw));
  document.addEventListener("renewed", (event) => {
    for (const [figure, view] of views) {
      if (figure.isConnected) continue;
      view.finalize();
      views.delete(figure);
    }
    figures().filter((figure) => event.detail.changed.includes(figure.dataset.chart) && views.has(figure)).forEach(draw);
    embedded.whenSeen(figures().filter((figure) => !views.has(figure)), draw);
  });
})();

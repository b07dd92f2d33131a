// What the page carries along, unpacked when it is asked for: downloads, pictures, data.
"use strict";
window.embedded = (() => {
  const unpacked = new Map();

  async function decompress(text) {
    const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  function bytes(name) {
    if (!unpacked.has(name)) {
      const found = document.querySelector(`script[data-embedded="${CSS.escape(name)}"]`);
      unpacked.set(name, found ? decompress(found.textContent) : Promise.reject(new Error(`nothing embedded called ${name}`)));
    }
    return unpacked.get(name);
  }

  const text = async (name) => new TextDecoder().decode(await bytes(name));
  const data = async (name) => JSON.parse(await text(name));

  function save(content, file, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // Call once for each element, as soon as it comes near the window, or is printed.
  function whenSeen(elements, call) {
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries.filter((one) => one.isIntersecting)) {
        observer.unobserve(entry.target);
        call(entry.target);
      }
    }, { rootMargin: "300px" });
    elements.forEach((element) => observer.observe(element));
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-download]");
    if (button) save(await bytes(button.dataset.download), button.dataset.download, "");
  });
  async function draw(image) {
    if (image.src) return;
    image.src = URL.createObjectURL(new Blob([await bytes(image.dataset.picture)], { type: "image/svg+xml" }));
  }
  const pictures = () => document.querySelectorAll("img[data-picture]:not([src])");
  whenSeen(pictures(), draw);
  addEventListener("beforeprint", () => pictures().forEach(draw));
  document.addEventListener("renewed", (event) => {
    event.detail.changed.forEach((name) => unpacked.delete(name));
    whenSeen(pictures(), draw);
  });
  return { text, data, save, whenSeen };
})();

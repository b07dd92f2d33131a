// What the page carries along, unpacked when it is asked for: downloads, runs, and the pictures that it shows.
"use strict";
window.embedded = (() => {
  async function decompress(text) {
    const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  async function read(name) {
    const picture = document.querySelector(`img[data-file="${CSS.escape(name)}"]`);
    if (picture) return decodeURIComponent(picture.src.slice(picture.src.indexOf(",") + 1));
    return decompress(document.querySelector(`script[data-embedded="${CSS.escape(name)}"]`).textContent);
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-download]");
    if (!button) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([await read(button.dataset.download)]));
    link.download = button.dataset.download;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
  return { data: async (name) => JSON.parse(new TextDecoder().decode(await read(name))) };
})();

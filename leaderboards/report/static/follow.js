// A page that is served asks for itself again while it is looked at, and shows what has become of it.
"use strict";
(() => {
  const EVERY_MS = 10000;
  const lost = document.createElement("p");
  Object.assign(lost, { className: "lost", hidden: true });
  lost.setAttribute("role", "alert");
  document.querySelector("main").prepend(lost);
  let shown = null, answeredAt = new Date(), timer = 0, looking = false;

  async function look() {
    if (looking || document.hidden) return;
    looking = true;
    clearTimeout(timer);
    try {
      const answer = await ask(location.href.split("#")[0]), mark = answer.headers.get("ETag");
      answeredAt = new Date();
      if (mark !== shown && renew(new DOMParser().parseFromString(await answer.text(), "text/html"))) shown = mark;
      lost.hidden = true;
    } catch (error) {
      lost.textContent = `No answer since ${answeredAt.toLocaleTimeString()}: the grid has ended, or was stopped. What stands here is from then.`;
      lost.hidden = false;
    }
    looking = false;
    timer = setTimeout(look, EVERY_MS);
  }

  document.addEventListener("visibilitychange", look);
  timer = setTimeout(look, EVERY_MS);
})();

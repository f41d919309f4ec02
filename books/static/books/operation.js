"use strict";

// Shows the progress of an operation each second, and the whole page again when it has ended.
const section = document.getElementById("operation-progress");

function show(name, text) {
  const element = section.querySelector(`[data-progress="${name}"]`);
  if (element && element.textContent !== text) element.textContent = text;
}

function showProgress(progress) {
  show("message", progress.message);
  show("outcome", progress.outcome.join(", "));
  const bar = section.querySelector("progress");
  if (bar && progress.matched !== null) {
    bar.max = Math.max(progress.matched, 1);
    bar.value = progress.done;
  }
}

async function refresh() {
  try {
    const answer = await fetch(section.dataset.address, { headers: { Accept: "application/json" } });
    if (answer.ok && !answer.redirected) {
      const progress = await answer.json();
      if (!progress.is_under_way) return location.reload();
      showProgress(progress);
    }
  } catch {
    // The server is away for a moment: the next second asks again.
  }
  setTimeout(refresh, 1000);
}

setTimeout(refresh, 1000);

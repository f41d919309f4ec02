"use strict";

// Saves each correction when its field is left. Enter leads to the same field of the next record.
const form = document.getElementById("check-form");
const status = document.getElementById("corrections-status");

async function save(name, value) {
  const fields = new URLSearchParams({ shown: form.elements.shown.value, [name]: value });
  const token = form.elements.csrfmiddlewaretoken.value;
  const headers = { Accept: "application/json", "X-CSRFToken": token };
  const answer = await fetch(form.getAttribute("action") || location.href, { method: "POST", body: fields, headers, keepalive: true });
  const state = await answer.json();
  if (!answer.ok) throw new Error(state.message);
  return state;
}

function show(state) {
  status.textContent = state.unchecked;
  const button = form.querySelector("[value=import]");
  if (!button) return;
  button.textContent = state.import_label;
  button.hidden = !state.writable_count;
}

// One after the other, so that the last number that is shown is the latest.
let queue = Promise.resolve();
let unsaved = 0;

function enqueue(name, value, after) {
  unsaved++;
  queue = queue.then(async () => {
    try {
      const state = await save(name, value);
      show(state);
      after(true);
    } catch (error) {
      status.textContent = error instanceof SyntaxError || error instanceof TypeError ? form.dataset.failure : error.message;
      after(false);
    }
    unsaved--;
  });
}

// Who leaves the page waits until the corrections are saved, and stays if one was not.
async function leaveWhenSaved(event, leave) {
  if (!unsaved) return;
  event.preventDefault();
  while (unsaved) await queue;
  if (!form.querySelector('[aria-invalid="true"]')) leave();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (link) leaveWhenSaved(event, () => location.assign(link.href));
});

form.addEventListener("submit", (event) => leaveWhenSaved(event, () => form.requestSubmit(event.submitter)));

window.addEventListener("beforeunload", (event) => {
  if (unsaved) event.preventDefault();
});

function findNext(input) {
  const inputs = [...form.querySelectorAll("input[type=text][name^=cell-]")];
  const later = inputs.slice(inputs.indexOf(input) + 1);
  const field = input.name.split("-")[2];
  return later.find((other) => other.name.endsWith(`-${field}`)) || later[0] || form.querySelector("[value=check]");
}

form.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing || !event.target.matches("input[type=text]")) return;
  event.preventDefault();
  findNext(event.target).focus();
});

form.addEventListener("change", ({ target }) => {
  if (!target.matches("input[type=text]")) return;
  enqueue(target.name, target.value, (isSaved) => {
    target.classList.toggle("saved", isSaved);
    target.setAttribute("aria-invalid", String(!isSaved));
  });
});

form.addEventListener("click", (event) => {
  const button = event.target.closest(".accept");
  if (!button) return;
  event.preventDefault();
  enqueue(button.name, button.value, (isSaved) => {
    if (!isSaved) return;
    const isAccepted = button.value === "yes";
    button.value = isAccepted ? "" : "yes";
    button.setAttribute("aria-pressed", String(isAccepted));
  });
});

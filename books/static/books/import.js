"use strict";

// Uploads a file in parts, so that one that was cut off goes on where it was. Without this script the form sends it whole.
const form = document.getElementById("import-form");
const progressLine = document.getElementById("import-progress");
const chunkBytes = Number(form.dataset.chunkBytes);
const ATTEMPTS = 5;

async function send(address, fields) {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  const token = form.querySelector("[name=csrfmiddlewaretoken]").value;
  const headers = { Accept: "application/json", "X-CSRFToken": token };
  const answer = await fetch(address, { method: "POST", body, headers });
  if (answer.redirected) throw new SignedOut(form.dataset.signedOut);
  if (answer.status === 403) throw new Refusal(form.dataset.forbidden);
  return answer;
}

function showText(text) {
  progressLine.querySelector("span").textContent = text;
}

// Why the server does not take the file, in words.
class Refusal extends Error {}

class SignedOut extends Refusal {}

// The parts of a file that has the same name, size and time but another content must not be mixed with these. A plain
// checksum is enough, and unlike crypto.subtle it also exists on pages without HTTPS.
async function hashContent(file) {
  let first = 0xdeadbeef;
  let second = 0x41c6ce57;
  for (let start = 0; start < file.size; start += chunkBytes) {
    for (const byte of new Uint8Array(await file.slice(start, start + chunkBytes).arrayBuffer())) {
      first = Math.imul(first ^ byte, 2654435761);
      second = Math.imul(second ^ byte, 1597334677);
      first = (first << 5) | (first >>> 27);
      second = (second << 7) | (second >>> 25);
    }
  }
  return `${(first >>> 0).toString(16)}-${(second >>> 0).toString(16)}`;
}

// A part that fails is sent again: the network may be away for a moment.
async function sendChunk(address, file, number) {
  const chunk = file.slice(number * chunkBytes, (number + 1) * chunkBytes);
  for (let attempt = 1; ; attempt++) {
    try {
      const answer = await send(address, { number, chunk });
      if (answer.ok || answer.status === 409) return (await answer.json()).next;
      if (answer.status === 422) throw new Refusal((await answer.json()).message);
      if (answer.status < 500) throw new RangeError(answer.statusText);
    } catch (error) {
      if (error instanceof RangeError || error instanceof Refusal || attempt === ATTEMPTS) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 500 * attempt));
  }
}

async function upload(file) {
  const hash = await hashContent(file);
  const fingerprint = `${hash}|${file.size}|${file.lastModified}|${file.name}`;
  const answer = await send(form.action, { name: file.name, size: file.size, fingerprint });
  const begun = await answer.json();
  if (!answer.ok) throw new Refusal(begun.message);
  const bar = progressLine.querySelector("progress");
  let next = begun.next;
  while (next * chunkBytes < file.size) {
    bar.max = file.size;
    bar.value = next * chunkBytes;
    showText(`${Math.floor((100 * bar.value) / file.size)} %`);
    next = await sendChunk(begun.chunk_address, file, next);
  }
  location.assign(begun.mapping_address);
}

form.addEventListener("submit", async (event) => {
  const file = form.querySelector("[type=file]").files[0];
  if (!file) return;
  event.preventDefault();
  const button = form.querySelector("[type=submit]");
  const signIn = progressLine.querySelector("a");
  button.disabled = true;
  progressLine.hidden = false;
  progressLine.classList.remove("failed");
  signIn.hidden = true;
  try {
    await upload(file);
  } catch (error) {
    progressLine.classList.add("failed");
    signIn.hidden = !(error instanceof SignedOut);
    showText(error instanceof Refusal ? error.message : form.dataset.failure);
  }
  button.disabled = false;
});

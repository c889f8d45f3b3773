// Behaviour that all pages share. Every page also works without it.
"use strict";

// <button data-copy="ID">: copy the text of the element with this id.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim());
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = label; }, 2000);
});

// Buttons that copy are of no use without this script.
for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;

// The space bar follows a link that looks like a button, and that screen readers call one.
document.addEventListener("keydown", (event) => {
  if (event.key !== " " || !event.target.matches('a[role="button"]')) return;
  event.preventDefault();
  event.target.click();
});

// A double click sends a form once: of two tokens that are created, the first would never be shown. Where another page
// comes, which may take long on a telephone, neither does a second click.
const sent = new WeakMap();
document.addEventListener("submit", (event) => {
  const button = event.submitter ?? event.target;
  const wait = event.target.matches('[method="post"]:not(.downloads)') ? 10000 : 2000;
  if (event.timeStamp - sent.get(button) < wait) event.preventDefault();
  else sent.set(button, event.timeStamp);
});

// A page with a refused form stands in the history as itself, so that going back or reloading sends no form again.
const { shownAt } = document.body.dataset;
if (shownAt) history.replaceState(null, "", shownAt + location.search + location.hash);

// Chooses the scheme of /docs before anything is drawn: that of the admin's button, or else that of the system.
"use strict";

const systemScheme = window.matchMedia("(prefers-color-scheme: dark)");

function applyScheme() {
  const chosen = localStorage.getItem("theme");
  const isDark = chosen === "dark" || (chosen !== "light" && systemScheme.matches);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  // Swagger UI's own name for it.
  document.documentElement.classList.toggle("dark-mode", isDark);
}

systemScheme.addEventListener("change", applyScheme);
applyScheme();

"use strict";

// Swagger UI has dark colours for <html class="dark-mode">.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

// Shows the description of this very service; nothing is loaded from elsewhere.
const ui = SwaggerUIBundle({
  url: "api/v1/openapi.json",
  dom_id: "#api",
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  persistAuthorization: false, // it would keep the token for all tabs, until the user logs out
  validatorUrl: null,
  onComplete: keepToken,
});

// Keeps a token for this tab, below the path of this service, until it is closed or the user logs out.
function keepToken() {
  const name = `token of ${location.pathname}`;
  const kept = sessionStorage.getItem(name);
  if (kept) ui.preauthorizeApiKey("bearer", kept);
  ui.getStore().subscribe(() => {
    const token = ui.getStore().getState().getIn(["auth", "authorized", "bearer", "value"]);
    if (token) sessionStorage.setItem(name, token);
    else sessionStorage.removeItem(name);
  });
}

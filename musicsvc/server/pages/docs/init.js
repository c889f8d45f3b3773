"use strict";

// Swagger UI has dark colours for <html class="dark-mode">.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

// Shows the description of this very service; nothing is loaded from elsewhere, and no token is kept.
SwaggerUIBundle({
  url: "api/v1/openapi.json",
  dom_id: "#api",
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
  validatorUrl: null,
});

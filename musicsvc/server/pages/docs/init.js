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

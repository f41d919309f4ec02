// Adds plugins to Swagger UI before the script of the page starts it.
"use strict";

// An operation that is open to everyone has an empty requirement, by which Swagger UI counts it as authorized.
const openPadlocks = () => ({
  statePlugins: {
    auth: {
      wrapSelectors: {
        isAuthorized: (original) => (state, requirements) =>
          original(state, requirements && requirements.filter((requirement) => requirement.size > 0)),
      },
    },
  },
});

const plainPage = () => ({
  wrapComponents: {
    // The page has a header of its own.
    InfoContainer: () => () => null,
    // A button may contain no link. The address of an operation is that of the page while it is open.
    DeepLink:
      (original, { React }) =>
      ({ text }) =>
        React.createElement("span", null, text),
  },
});

window.SwaggerUIBundle = new Proxy(window.SwaggerUIBundle, {
  apply: (bundle, self, [options]) => bundle({ ...options, plugins: [...options.plugins, openPadlocks, plainPage] }),
});

// What Swagger UI leaves out, or says otherwise than it shows: attributes by the elements that lack them.
const MISSING_ATTRIBUTES = {
  "section.models h4": { "aria-level": "2" },
  ".examples-select-element": { "aria-label": "Example" },
  ".dialog-ux .modal-ux": { role: "dialog", "aria-modal": "true", "aria-label": "Available authorizations" },
  ".close-modal": { "aria-label": "Close" },
  ".modal-btn.auth": { "aria-label": null },
};

const addAttributes = () => {
  for (const [selector, attributes] of Object.entries(MISSING_ATTRIBUTES))
    for (const element of document.querySelectorAll(selector))
      for (const [name, value] of Object.entries(attributes))
        value === null ? element.removeAttribute(name) : element.setAttribute(name, value);
  // Two open operations may have tables of the same name.
  for (const table of document.querySelectorAll(".responses-table"))
    table.setAttribute("aria-label", `Responses of ${table.closest(".opblock").id}`);
};

new MutationObserver(addAttributes).observe(document.getElementById("swagger-ui"), { childList: true, subtree: true });

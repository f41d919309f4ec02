// Plugins for Swagger UI, which the script of the page starts with them.
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

// Requests go to the origin of the page, by whatever name it was opened: its policy allows no other.
const ownServer = () => ({
  statePlugins: {
    spec: {
      wrapActions: {
        updateJsonSpec:
          (original) =>
          ({ servers, ...rest }) =>
            original(rest),
      },
    },
  },
});

// The colours of code are those of the palette, in both schemes. Swagger UI's own do not stand out from their ground.
const CODE_THEME = {
  hljs: { display: "block", padding: "0.5em", overflowX: "auto", background: "var(--stripe)", color: "var(--ink)" },
  "hljs-attr": { color: "var(--accent)" },
  "hljs-string": { color: "var(--series-3)" },
  "hljs-number": { color: "var(--warning)" },
  "hljs-literal": { color: "var(--danger)" },
  "hljs-keyword": { color: "var(--danger)" },
};

const plainPage = () => ({
  wrapComponents: {
    SyntaxHighlighter:
      (original, { React }) =>
      (properties) =>
        React.createElement(original, { ...properties, syntaxHighlighting: { defaultStyle: CODE_THEME } }),
    // The page has a header of its own.
    InfoContainer: () => () => null,
    // A button may contain no link. The address of an operation is that of the page while it is open.
    DeepLink:
      (original, { React }) =>
      ({ text }) =>
        React.createElement("span", null, text),
  },
});

const nameParameter = (field) => field.closest("[data-param-name]").dataset.paramName;

// What Swagger UI leaves out, or says otherwise than it shows: attributes by the elements that lack them. A function
// reads the value from the element.
const MISSING_ATTRIBUTES = {
  "section.models h4": { "aria-level": "2" },
  ".examples-select-element": { "aria-label": "Example" },
  ".scheme-container": { role: "region", "aria-label": "Authorization" },
  "[data-param-name] :is(select, input, textarea)": { "aria-label": nameParameter },
  ".body-param__text": { "aria-label": "Request body" },
  // A long response scrolls by the keyboard too.
  "pre.microlight": { tabindex: "0" },
  ".highlight-code > pre": { tabindex: "0" },
  ".dialog-ux .modal-ux": { role: "dialog", "aria-modal": "true", "aria-label": "Available authorizations" },
  ".close-modal": { "aria-label": "Close" },
  ".modal-btn.auth": { "aria-label": null },
};

const setAttribute = (element, name, value) => {
  const text = typeof value === "function" ? value(element) : value;
  text === null ? element.removeAttribute(name) : element.setAttribute(name, text);
};

const addAttributes = () => {
  for (const [selector, attributes] of Object.entries(MISSING_ATTRIBUTES))
    for (const element of document.querySelectorAll(selector))
      for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  // Two open operations may have tables of the same name.
  for (const table of document.querySelectorAll(".responses-table"))
    table.setAttribute("aria-label", `Responses of ${table.closest(".opblock").id}`);
};

new MutationObserver(addAttributes).observe(document.getElementById("swagger-ui"), { childList: true, subtree: true });

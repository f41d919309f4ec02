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

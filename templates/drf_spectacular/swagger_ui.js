"use strict";
{# drf-spectacular's own script puts the visitor's CSRF token into each request, also into the curl that is shown. #}
const ui = SwaggerUIBundle({
  url: "{{ schema_url|escapejs }}",
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [openPadlocks, ownServer, plainPage],
  layout: "BaseLayout",
  ...{{ settings|safe }},
});

ui.initOAuth({{ oauth2_config|safe }});

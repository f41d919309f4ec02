"""Django's settings, in Django's order; docs/operations/settings.md lists the environment variables."""

import sys
from copy import deepcopy
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from corsheaders.defaults import default_headers
from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _

from library_site.db.config import parse_database_url
from library_site.deployment import env

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = env.folder("DATA_DIR", BASE_DIR / ".data")
# Whether `serve` begins with `deploy`, and `deploy` creates a missing secret key as `set_up` does. The container image
# sets it.
SET_UP = env.flag("SET_UP", default=False)

# Core
DEBUG = env.flag("DEBUG", default=False)
SECRET_KEY_PATH = DATA_DIR / "secret_key"
# The commands that create a missing key.
KEY_COMMANDS = ("set_up", "deploy") if SET_UP else ("set_up",)
SECRET_KEY = env.secret_key(
    "SECRET_KEY", SECRET_KEY_PATH, may_be_missing=DEBUG or "".join(sys.argv[1:2]) in KEY_COMMANDS
)
SECRET_KEY_FALLBACKS = env.comma_list("SECRET_KEY_FALLBACKS", "")
ALLOWED_HOSTS = env.host_names("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
CSRF_TRUSTED_ORIGINS = env.origins("CSRF_TRUSTED_ORIGINS", allow_wildcard=True)
# manage.py sets it by its command. Only requests have time limits for locks and statements.
LIBRARY_PROCESS = env.choice("LIBRARY_PROCESS", "command", ("web", "worker", "command", "doctor"))
DATABASE_LOCK_TIMEOUT = env.integer("DATABASE_LOCK_TIMEOUT", 2, 0, 3600)
DATABASE_STATEMENT_TIMEOUT = env.integer("DATABASE_STATEMENT_TIMEOUT", 5, 0, 3600)
DATABASE_IDLE_TIMEOUT = env.integer("DATABASE_IDLE_TIMEOUT", 60, 0, 3600)
WEB_TIMEOUTS = {"lock_timeout": DATABASE_LOCK_TIMEOUT, "statement_timeout": DATABASE_STATEMENT_TIMEOUT}
DATABASE_TIMEOUTS = {
    "idle_in_transaction_session_timeout": DATABASE_IDLE_TIMEOUT,
    **(WEB_TIMEOUTS if LIBRARY_PROCESS == "web" else {}),
}
DATABASES = {
    "default": env.database(
        "DATABASE_URL",
        DATA_DIR / "library.sqlite3",
        () if SET_UP else ("DATA_DIR", "HTTPS"),
        partial(parse_database_url, process=LIBRARY_PROCESS, timeouts=DATABASE_TIMEOUTS),
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
OWN_APPS = ["oauth", "webhooks", "books", "library_site"]
INSTALLED_APPS = [
    "library_site.apps.LibraryAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    # Its German for times like "5 minutes ago".
    "django.contrib.humanize",
    "whitenoise.runserver_nostatic",
    "library_site.apps.StaticFilesConfig",
    "csp",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "oauth.apps.ToolkitConfig",
    "axes",
    "corsheaders",
    *OWN_APPS,
]
MIDDLEWARE = [
    # First: monitoring programs come without an allowed Host, and leave no line in the log.
    "library_site.monitoring.probes.ProbesMiddleware",
    "library_site.monitoring.middleware.RequestLogMiddleware",
    "library_site.http.middleware.CompressionMiddleware",
    "library_site.http.middleware.VersionMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "library_site.http.middleware.BodyMiddleware",
    "library_site.http.middleware.AddressMiddleware",
    "library_site.http.pages.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "oauth.throttling.bound_streams",
    "oauth.throttling.count_refusals",
    "library_site.http.localization.localize_pages",
    "library_site.http.pages.SessionMiddleware",
    "library_site.http.pages.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "oauth.accounts.sessions.AuthenticationMiddleware",
    "library_site.http.pages.MessageMiddleware",
    "library_site.http.pages.XFrameOptionsMiddleware",
    "oauth.passwords.lockout.HashingBusyMiddleware",
    "books.history.actors.act_as_sender",
    # Last, as django-axes asks.
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "library_site.urls"
WSGI_APPLICATION = "library_site.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# The largest request body in bytes, also if it is chunked.
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
# More parameters than fit into an address: Django must not reject a query for its number of parameters.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 40_000

# Used by `manage.py serve`
HOST = env.address("HOST", "127.0.0.1")
PORT = env.integer("PORT", 8000, 1, 65535)
WEB_CONCURRENCY = env.integer("WEB_CONCURRENCY", 2, 1, 1024)
WEB_THREADS = env.integer("WEB_THREADS", 8, 1, 1024)

# Seconds from a stop until the process is killed: a request whose body never arrives must not block the stop.
STOP_TIMEOUT = env.integer("STOP_TIMEOUT", 10, 2, 3600)
# The separate port for probes of each process; 0 turns it off.
HEALTH_HOST = env.address("HEALTH_HOST", "127.0.0.1")
HEALTH_PORT = env.integer("HEALTH_PORT", 0, 0, 65535)
# The checks of `/readyz` besides the database, by name: functions that raise an exception if they fail.
READINESS_CHECKS = {"signing_key": "oauth.tokens.jwks.get_keys"}

# The token for `/metrics`; without a token there are no metrics.
METRICS_TOKEN = env.token("METRICS_TOKEN")
# A command that encrypts a backup from its standard input to its standard output.
BACKUP_ENCRYPT_COMMAND = env.text("BACKUP_ENCRYPT_COMMAND", "")
# The folder in which the processes of a server share their metrics.
METRICS_DIR = env.path("METRICS_DIR", DATA_DIR / "metrics" / str(PORT))
# Functions that read metrics for a scrape (`library_site.monitoring.metrics.MetricSource`).
METRIC_SOURCES = [
    "library_site.deployment.machine.read_machine",
    "library_site.monitoring.sources.read_redis",
    "library_site.monitoring.sources.read_connections",
    "oauth.metrics.read_accounts",
    "webhooks.metrics.read_deliveries",
    "webhooks.metrics.read_expiry",
    "books.operations.metrics.read_operations",
]

# The origin at which clients reach the library; links begin with it.
PUBLIC_URL = env.origin("PUBLIC_URL", env.local_origin(HOST, PORT))

# The modules with the addresses below `/api` of each version, by version number. The first address that matches counts.
API_URLS = {
    1: ["books.api.v1.urls"],
    2: ["books.api.v2.urls", "oauth.api.v2.urls", "webhooks.api.v2.urls"],
}
# When versions of the interface end, by version number (specification, Section 9)
API_LIFECYCLES: dict[int, dict[str, Any]] = {
    number: {
        "deprecated_on": env.date_time(f"API_V{number}_DEPRECATED_ON"),
        "sunset_on": env.date_time(f"API_V{number}_SUNSET_ON"),
        "migration_url": env.url(f"API_V{number}_MIGRATION_URL"),
        "changelog_url": env.url(f"API_V{number}_CHANGELOG_URL"),
        "retired": env.flag(f"API_V{number}_RETIRED", default=False),
    }
    for number in env.version_numbers(
        "API_V", ("DEPRECATED_ON", "SUNSET_ON", "MIGRATION_URL", "CHANGELOG_URL", "RETIRED")
    )
}

# `manage.py clear_expired` deletes the rows that these functions list, in this order.
EXPIRED_ROWS = [
    "books.api.idempotency.iter_expired",
    "oauth.expiry.iter_expired",
    "webhooks.expiry.iter_expired",
    "books.history.expiry.iter_expired",
    "books.files.uploads.iter_expired",
    "books.files.export_tasks.iter_expired",
]
# The changes of books are deleted after so many days; 0 keeps them for ever.
HISTORY_KEPT_DAYS = env.integer("HISTORY_KEPT_DAYS", 0, 0, 36_500)

# `manage.py doctor` calls these functions, which count inconsistent rows: each must return 0.
CONSISTENCY_CHECKS = {
    "lent books": "books.search.lent_books.count_differences",
    "search texts": "books.search.search_texts.count_differences",
}

# The maximum of a user's uploads for imports. Files are deleted after some days.
UPLOAD_MAX_FILES = env.integer("UPLOAD_MAX_FILES", 100, 1, 10**6)
UPLOAD_MAX_MEGABYTES = env.integer("UPLOAD_MAX_MEGABYTES", 4096, 1, 10**6)

# Catalogues of other libraries that are searched for an ISBN (SRU), in this order, and whether they may be on this
# machine or in private networks.
SRU_SERVERS = env.url_templates("SRU_SERVERS", "{isbn}")
SRU_ALLOW_PRIVATE = env.flag("SRU_ALLOW_PRIVATE", default=False)
# Each process caches the responses of these catalogues.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "OPTIONS": {"MAX_ENTRIES": 10_000}}}

# Called at the end of an app's access or an API key, with the condition for the rows that it created.
ACCESS_END_HANDLERS = ["webhooks.endpoints.disable_issued"]

# Modules with an app's personal data, for `export_user` and `forget_user`. They call oauth's own module directly.
PERSONAL_DATA = ["webhooks.management.personal_data", "books.management.personal_data"]

# Sign-in
LOCKOUT_BACKEND = "oauth.passwords.lockout.LockoutBackend"
AUTHENTICATION_BACKENDS = [LOCKOUT_BACKEND]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
# The first hashes passwords, the last the toolkit's generated secrets.
PASSWORD_HASHERS = ["oauth.passwords.hashers.BoundedPBKDF2Hasher", "oauth.passwords.hashers.GeneratedSecretHasher"]
# Whether people who see the pages of the library must have a second factor.
TWO_FACTOR_FOR_STAFF = env.flag("TWO_FACTOR_FOR_STAFF", default=False)
# Seconds for which the link for a forgotten password is valid.
PASSWORD_RESET_TIMEOUT = 3600
LOGIN_URL = "accounts:login"
LOGIN_REDIRECT_URL = "accounts:apps"
SESSION_ENGINE = "library_site.db.sessions"

# Lockout of clients that guess passwords or secrets (django-axes)
AXES_HANDLER = "oauth.passwords.lockout.LockoutHandler"
AXES_USERNAME_CALLABLE = "oauth.passwords.lockout.get_counted_name"
# Failures are counted by the pair of name and address.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = "oauth.passwords.lockout.get_failure_limit"
AXES_COOLOFF_TIME = timedelta(minutes=5)
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_CALLABLE = "oauth.passwords.lockout.render_locked"
AXES_CLIENT_IP_CALLABLE = "library_site.http.callers.get_client_ip"
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

# A proxy terminates HTTPS, and must set X-Forwarded-Proto itself.
HTTPS = env.flag("HTTPS", default=False)
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if HTTPS else 0
SILENCED_SYSTEM_CHECKS = [
    # It looks for the name of Django's own XFrameOptionsMiddleware.
    "security.W002",
    # Only the owner of a whole domain can promise HTTPS for all of it.
    "security.W005",
    "security.W021",
    # `consent` sends iss with every redirect; `redirect_uris` allows http only for a person's own machine.
    "oauth2_provider.W005",
    "oauth2_provider.W008",
]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    },
}

# Languages and times
# Programs always get English. People can choose; otherwise the browser sends their languages and time zone.
LANGUAGE_CODE = "en-us"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [BASE_DIR / "library_site" / "locale"]
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_SECURE = HTTPS
TIME_ZONE = "UTC"
USE_TZ = True

# Static files
STATIC_URL = "/static/"
STATIC_ROOT = env.path("STATIC_ROOT", DATA_DIR / "static")
# Files at fixed addresses: browsers request /favicon.ico.
WHITENOISE_ROOT = BASE_DIR / "library_site" / "root_files"

# Logs
LOG_LEVEL = env.choice("LOG_LEVEL", "info", ("debug", "info", "warning", "error", "critical"))
# A request that takes so many milliseconds gets a log line with the total of its statements; 0 turns that off.
SLOW_REQUEST_MS = env.integer("SLOW_REQUEST_MS", 1000, 0, 3_600_000)
LOG_FORMAT = env.choice("LOG_FORMAT", "text", ("text", "json"))
# At DEBUG, libraries log bodies and tokens: Django logs SQL with parameters, templates log variables.
OTHERS_LOG_LEVEL = "INFO" if LOG_LEVEL == "debug" else LOG_LEVEL.upper()
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {"()": "library_site.monitoring.log_formatters.TextFormatter"},
        "json": {"()": "library_site.monitoring.log_formatters.JSONFormatter"},
    },
    "filters": {"unavailable": {"()": "library_site.monitoring.log_formatters.UnavailableFilter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "root": {"handlers": ["stderr"], "level": OTHERS_LOG_LEVEL},
    "loggers": {
        **{app: {"level": LOG_LEVEL.upper()} for app in OWN_APPS},
        "django": {"handlers": [], "level": OTHERS_LOG_LEVEL},
        # It logs each count at INFO; only a lockout is a warning.
        "axes": {"level": "WARNING"},
        # It logs that a wrong password came without a request, as from a command.
        "axes.handlers.proxy": {"level": "CRITICAL"},
        # A 4xx is the client's error, not the library's.
        "django.request": {"level": "ERROR", "filters": ["unavailable"]},
        "django.security": {"level": "CRITICAL"},
        # The access log of runserver contains queries.
        "django.server": {"handlers": [], "level": "CRITICAL", "propagate": True},
        # The server's log, in the library's format.
        "_granian": {"handlers": [], "level": "ERROR", "propagate": True},
    },
}

# Reports of errors, to Sentry or a service that speaks its protocol
SENTRY_DSN = env.optional_text("SENTRY_DSN", "sentry_sdk")
# Traces; OpenTelemetry itself reads more variables
TRACES_ENABLED = bool(
    env.optional_text("OTEL_EXPORTER_OTLP_ENDPOINT", "opentelemetry.sdk")
    or env.optional_text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "opentelemetry.sdk")
)

# Mail to people; without a server it is written to standard output.
EMAIL_HOST = env.text("EMAIL_HOST", "")
EMAIL_PORT = env.integer("EMAIL_PORT", 25, 1, 65535)
EMAIL_HOST_USER = env.text("EMAIL_HOST_USER", "")
EMAIL_HOST_PASSWORD = env.text("EMAIL_HOST_PASSWORD", "")
# Port 465 has TLS from the first byte (RFC 8314, 3.3), and no STARTTLS.
EMAIL_USE_SSL = EMAIL_PORT == 465
EMAIL_USE_TLS = env.flag("EMAIL_USE_TLS", default=False) and not EMAIL_USE_SSL
EMAIL_TIMEOUT = 10
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if EMAIL_HOST else 'console'}.EmailBackend"
DEFAULT_FROM_EMAIL = env.text("EMAIL_FROM", "library@localhost")

# Events (specification, Section 6)
# The version whose book `books.writing.events` shows.
EVENT_API_VERSION = 2
# Whether receivers may be on this machine and in private networks.
WEBHOOKS_ALLOW_PRIVATE = env.flag("WEBHOOKS_ALLOW_PRIVATE", default=False)
# The maximum of an owner's waiting deliveries: a replay that would exceed it is rejected.
WEBHOOKS_MAX_WAITING = env.integer("WEBHOOKS_MAX_WAITING", 100_000, 1, 10_000_000)

# Apps and keys (specification, Section 5)
LIBRARY_ACCESS = env.choice("LIBRARY_ACCESS", "open", ("open", "protect-writes", "protected"))
OAUTH_JWKS_FILE = env.path("OAUTH_JWKS_FILE", DATA_DIR / "jwks.json")
# By name, the scopes of credentials: a sentence for people, and the permissions that the scope covers. A user with any
# of them may have the scope; None stands for what every active user may do.
OAUTH_SCOPES = {
    "read": (_("Read the library's books"), None, "books.view_book"),
    "write": (
        _("Add, change and delete books"),
        *("books.add_book", "books.change_book", "books.delete_book", "books.view_history"),
        *("books.bulk_edit_books", "books.undo_others_operations"),
    ),
    "webhooks": (
        _("Manage webhooks and read events"),
        *("webhooks.add_endpoint", "webhooks.change_endpoint", "webhooks.delete_endpoint", "webhooks.view_endpoint"),
        *("webhooks.change_delivery", "webhooks.view_delivery", "webhooks.view_event"),
    ),
}
# Whether confidential apps get tokens without a user (`client_credentials`).
OAUTH_CLIENT_CREDENTIALS = env.flag("OAUTH_CLIENT_CREDENTIALS", default=False)
# The toolkit's own model; migrations refer to it by this name.
OAUTH2_PROVIDER_APPLICATION_MODEL = "oauth2_provider.Application"
OAUTH2_PROVIDER = {
    "OAUTH2_SERVER_CLASS": "oauth.server.backend.AuthorizationServer",
    "OAUTH2_BACKEND_CLASS": "oauth.server.backend.OAuthBackend",
    "OAUTH2_VALIDATOR_CLASS": "oauth.server.validators.RequestValidator",
    "SCOPES_BACKEND_CLASS": "oauth.scopes.ScopesBackend",
    "ACCESS_TOKEN_GENERATOR": "oauth.tokens.access_tokens.generate_access_token",
    "REFRESH_TOKEN_GENERATOR": "oauth.tokens.access_tokens.generate_refresh_token",
    "CLIENT_SECRET_HASHER": "generated_secret",
    "AUTHORIZATION_CODE_EXPIRE_SECONDS": 10 * 60,
    "ACCESS_TOKEN_EXPIRE_SECONDS": 3600,
    # Counted from the end of the last access token.
    "REFRESH_TOKEN_EXPIRE_SECONDS": 30 * 24 * 3600,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https", "http"],
    "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
}

# Browser apps of other origins (CORS)
CORS_ALLOWED_ORIGINS = env.origins("CORS_ALLOWED_ORIGINS")
CORS_URLS_REGEX = r"^/(api/|oauth/(token|refresh|revoke|resource)/?$|openapi(/v\d+)?\.json/?$|\.well-known/)"
CORS_ALLOW_HEADERS = [
    *default_headers,
    "baggage",
    "idempotency-key",
    "if-match",
    "if-none-match",
    "traceparent",
    "tracestate",
    "x-api-key",
    "x-request-id",
]
CORS_EXPOSE_HEADERS = [
    "ETag",
    "Idempotent-Replayed",
    "Link",
    "Location",
    "RateLimit",
    "RateLimit-Policy",
    "Retry-After",
    "WWW-Authenticate",
    "X-Request-ID",
]
if CORS_ALLOWED_ORIGINS:
    # Before all that may answer: a browser app must be able to read errors, too.
    MIDDLEWARE.insert(
        MIDDLEWARE.index("django.middleware.security.SecurityMiddleware"), "corsheaders.middleware.CorsMiddleware"
    )

# The API
# Whether common requests skip Django's handler and statements skip Django's cursors. The responses are the same.
COMPILED_PATH = env.flag("COMPILED_PATH", default=True)
# Compresses responses of the API for clients that accept gzip. A proxy can do so, too.
GZIP = env.flag("GZIP", default=False)
API_RATE_LIMIT = env.rate("API_RATE_LIMIT")
REDIS_URL = env.redis_url("REDIS_URL")
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "oauth.authentication.BearerAuthentication",
        "oauth.authentication.APIKeyAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["oauth.permissions.LibraryAccess"],
    "DEFAULT_THROTTLE_CLASSES": ["oauth.throttling.CallerThrottle"] if API_RATE_LIMIT else [],
    "DEFAULT_RENDERER_CLASSES": ["library_site.api.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["library_site.api.parsers.JSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "library_site.api.negotiation.JSONNegotiation",
    "DEFAULT_SCHEMA_CLASS": "library_site.api.operation_schema.OperationSchema",
    "EXCEPTION_HANDLER": "library_site.http.errors.exception_handler",
    "DEFAULT_VERSIONING_CLASS": "library_site.api.negotiation.ServedVersioning",
    # Of views outside the addresses of the versions.
    "DEFAULT_VERSION": f"v{max(API_URLS)}",
    "NUM_PROXIES": env.integer("NUM_PROXIES", 0, 0, 100),
}
# What the compiled path stands for. It steps aside for any other.
SHIPPED = deepcopy(SimpleNamespace(MIDDLEWARE=MIDDLEWARE, REST_FRAMEWORK=REST_FRAMEWORK, ROOT_URLCONF=ROOT_URLCONF))
SPECTACULAR_SETTINGS = {
    "TITLE": "Library API",
    "DESCRIPTION": "A RESTful API for managing books in a library",
    "VERSION": "1.0.0",
    "OAS_VERSION": "3.1.1",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "oauth2RedirectUrl": f"{PUBLIC_URL}/docs/oauth2-redirect.html"},
    # The app that `oauth.server.docs_client` registers.
    "SWAGGER_UI_OAUTH2_CONFIG": {
        "clientId": "library-docs",
        "usePkceWithAuthorizationCodeGrant": True,
        "scopes": ["read", "write"],
    },
    "ENABLE_DJANGO_DEPLOY_CHECK": False,
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_PATCH": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "POSTPROCESSING_HOOKS": [
        "library_site.api.documents.openapi.mark_required_bodies",
        "library_site.api.documents.openapi.declare_versions",
        "webhooks.api.openapi.document_events",
        "library_site.api.documents.clients.name_schemas",
    ],
}

env.refuse_wrong_values()

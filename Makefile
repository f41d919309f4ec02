# The two commands are `make run` and `make test`; `make help` lists the rest.

.DELETE_ON_ERROR:
PYTHON ?= python3
BIN := .venv/bin
MANAGE := $(BIN)/python manage.py
LOCK := uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-emit-index-url \
	--custom-compile-command "make lock"

# Options of the measurements and of the image: make faults OPTIONS='--seconds 60'
OPTIONS ?=

# One make prepares the checkout at a time; the others wait for it.
PREPARE := $(PYTHON) requirements/bootstrap.py

.PHONY: help run test test-both check clients messages bench bench-scale faults screenshots image lock prepare-dev

help: ## Lists the commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

run: ## Sets everything up and serves the library on http://127.0.0.1:8000
	@$(PREPARE) run
	@exec $(MANAGE) serve --with deliver_webhooks --with run_operations

test: ## Runs the suite, on SQLite and on a throw-away PostgreSQL what can differ there
	@$(PREPARE) test
	@$(BIN)/python -m tests

test-both: ## Runs the whole suite on both databases
	@$(PREPARE) test
	@$(BIN)/python -m tests --both

check: prepare-dev ## Style, types, import rules, migrations, deployment and the OpenAPI document
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MANAGE) makemigrations --check --dry-run
	HTTPS=true PUBLIC_URL=https://library.example ALLOWED_HOSTS=library.example NUM_PROXIES=1 \
		DATABASE_URL=$${DATABASE_URL:-sqlite:///.data/library.sqlite3} LIBRARY_ACCESS=protect-writes $(MANAGE) check --deploy --fail-level WARNING
	@test -n "$(wildcard books/api/v[0-9]*)" || { echo "No version was found in books/api"; exit 1; }
	@for version in $(notdir $(wildcard books/api/v[0-9]*)); do \
		echo "The OpenAPI document of $$version"; \
		$(MANAGE) spectacular --skip-checks --api-version $$version --fail-on-warn --file /dev/null || exit 1; \
	done

messages: prepare-dev ## Collects the texts to translate, and compiles the translations (needs GNU gettext)
	@command -v msgmerge >/dev/null || { echo "make messages needs GNU gettext, which is not installed."; exit 1; }
	$(MANAGE) makemessages --all --no-wrap --no-obsolete --add-location file \
		--ignore ".venv*" --ignore tests --ignore benchmarks --ignore node_modules
	$(MANAGE) compilemessages --ignore ".venv*"

clients: ## Generates clients from the OpenAPI document, compiles them, and runs a program with each
	@$(PREPARE) clients
	@$(BIN)/python -m tests.clients.generated

bench: ## Measures the library beside its peers, and says which goals it keeps
	@$(PREPARE) bench
	@$(BIN)/python -m benchmarks $(OPTIONS)

bench-scale: prepare-dev ## Measures how the library's answers grow up to a million books, on both databases
	@$(BIN)/python -m benchmarks.scale $(OPTIONS)

faults: prepare-dev ## Kills processes and connections while books change: nothing may be lost, and no process ends by itself
	@$(BIN)/python -m benchmarks.faults $(OPTIONS)

screenshots: prepare-dev ## Takes the pictures of the documents from a library that it serves (needs Chromium)
	@$(BIN)/python -m docs.screenshots

image: ## Builds the container image library-api (needs docker, podman or buildah)
	@if docker info >/dev/null 2>&1; then build="docker build"; \
	elif command -v podman >/dev/null; then build="podman build --format=docker"; \
	elif command -v buildah >/dev/null; then build="buildah build --format=docker"; \
	else echo "make image needs docker, podman or buildah, and none is there."; exit 1; fi; \
	version=$$(sed -n 's/.*image\.version="\(.*\)".*/\1/p' Containerfile); \
	$$build --file=Containerfile --tag=library-api:$$version --tag=library-api:latest $(OPTIONS) .

lock: ## Resolves requirements/*.in anew (needs uv)
	@command -v uv >/dev/null || { echo "make lock needs uv, which is not installed."; exit 1; }
	$(LOCK) -o requirements/run.txt requirements/run.in
	$(LOCK) -o requirements/dev.txt requirements/dev.in
	$(LOCK) -o requirements/bench.txt requirements/bench.in
	$(LOCK) -o requirements/clients.txt requirements/clients.in

prepare-dev:
	@$(PREPARE) dev

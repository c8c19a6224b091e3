# make            list the targets
# make run        start everything and chat
# make test       run all tests, on a real Temporal server

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run dev example up down build test test-long e2e-postgres services check histories golden bench soak fuzz clean binaries

# Tests to run: make test T=TestName P=./pkg
P ?= ./...
T ?=

# Flags for the benchmark: make bench B='-quick -run signal'
B ?=

# Temporal server: make bench SERVER=postgres, make soak SERVER=stock or make test SERVER=stock (default settings)
SERVER ?= dev
stock = $(if $(filter stock,$(SERVER)),-stock)
export CHRONICLE_E2E_STOCK := $(if $(filter stock,$(SERVER)),1)

# Duration of the faults, and other flags: make soak SOAK=30s S="-seed 7"
SOAK ?= 10m
S ?=

# Duration of the fuzz, and other flags: make fuzz FUZZ=1h F="-seed 7"
FUZZ ?= 2m
F ?=

# Flags for the worker: make run W='--temporal-port 0 --ui-port 0 --nats-port 0'
W ?=

# Build tags: make build TAGS=clouds adds s3://, gs:// and azblob:// to --blob-url.
TAGS ?=
tags = $(if $(TAGS),-tags $(TAGS))

# On Linux the race detector requires a C compiler.
race := $(if $(shell command -v $$(go env CC)),-race)

# Linters are in a module of their own, to keep their requirements out of go.mod.
lint := go tool -modfile=build/lint/go.mod

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

run: bin/temporal binaries ## Chat with a context; starts everything it needs and stops it on exit; W='FLAGS' for the worker
	@bin/worker --dev $(W) -- bin/starter chat || test $$? -eq 130

dev: bin/temporal binaries ## Run the worker and everything it needs until Ctrl-C
	@bin/worker --dev $(W)

up: ## Start docker-compose.yml and wait until the workers are ready; Temporal is at 127.0.0.1:7233
	docker compose up --build --detach --wait

down: ## Stop docker-compose.yml; the database is kept
	docker compose down

example: bin/temporal binaries ## Talk to the agent in examples/support, with a key in OPENAI_API_KEY or another server in OPENAI_BASE_URL
	@go build -o bin/ ./examples/support
	@echo "Write to the shop as a customer, for example about your order A-1001; Ctrl-D exits"
	@bin/worker --dev $(W) -- bin/support || test $$? -eq 130

build: bin/temporal binaries ## Build bin/worker, bin/starter and bin/temporal

# The go command detects changes itself. Without debugging information, linking is faster; stack
# traces do not need it.
binaries:
	@test -e bin/worker || echo "building bin/worker and bin/starter; the first time this takes about a minute"
	@go build $(tags) -ldflags "-s -w" -o bin/ ./worker ./starter

# The version of the Temporal server that build/temporal pins.
pinned = $(shell awk '$$1 == "go.temporal.io/server" { print substr($$2, 2) }' build/temporal/go.mod)

# A link to the temporal on PATH if it contains the pinned server, else a build.
bin/temporal: build/temporal/go.mod
	@mkdir -p bin && rm -f $@
	@installed=$$(command -v temporal) && "$$installed" --version 2>/dev/null | grep -qF '(Server $(pinned),' && \
		echo "using $$installed with Temporal $(pinned)" && ln -s "$$installed" $@ || { \
		echo "building bin/temporal, Temporal's own dev server; the first time this takes about 2.5 minutes"; \
		cd build/temporal && go build -o ../../$@ -ldflags "-s -w" github.com/temporalio/cli/cmd/temporal && touch ../../$@; }

# The servers in docker-compose.yml, for deploy/local.sh.
production = bin/temporal-server bin/temporal-sql-tool bin/nats-server bin/versitygw bin/prometheus

bin/temporal-server: package = go.temporal.io/server/cmd/server
bin/temporal-sql-tool: package = go.temporal.io/server/cmd/tools/sql
bin/nats-server: package = github.com/nats-io/nats-server/v2

$(filter-out bin/versitygw bin/prometheus,$(production)): build/server/go.mod
	@echo "building $@; the first time bin/temporal-server takes about 4 minutes, the others seconds"
	@cd build/server && go build -o ../../$@ $(package)
	@touch $@

# An S3-compatible server.
bin/versitygw: build/s3/go.mod
	@echo "building $@; the first time this takes about a minute"
	@cd build/s3 && go build -o ../../$@ github.com/versity/versitygw/cmd/versitygw
	@touch $@

# Without service discovery in clouds, whose libraries are most of it.
bin/prometheus: build/prometheus/go.mod
	@echo "building $@; the first time this takes about 3 minutes"
	@cd build/prometheus && go build -tags remove_all_sd,enable_dns_sd -o ../../$@ github.com/prometheus/prometheus/cmd/prometheus
	@touch $@

# What deploy/local.sh starts. The workers and the gateway use s3://.
services: TAGS = clouds
services: $(production) bin/temporal binaries

# The reference MCP servers, for the tests of tool/mcp. Without npm or its registry these are
# skipped.
bin/mcp: build/mcp/package-lock.json
	@if command -v npm >/dev/null; then \
		echo "installing the reference MCP servers, in about 10 seconds"; \
		mkdir -p $@ && cp build/mcp/package.json build/mcp/package-lock.json $@ && \
		npm ci --prefix $@ --ignore-scripts --no-audit --no-fund --loglevel=error && touch $@ || rm -rf $@; \
	fi

# Many tests wait for servers, so more run at a time than there are processors.
gotest = GORACE="atexit_sleep_ms=100 $$GORACE" go test -timeout 20m -parallel $$((2 * $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)))

# The race detector finds nothing in packages whose code and tests start no goroutines, and multiplies their time by ten.
sequential = ./event ./internal/formats/agent ./internal/formats/chat ./reducer/transcript

# Tests whose names end with _Alone have megabytes of text or thousands of cases, or kill workers. They run at the end,
# two at a time and without the race detector. With T, they run with it, like all others.
alone = ./client ./test/e2e ./internal/eventlog ./gateway ./llm ./reducer ./workflows

test: bin/temporal bin/mcp ## Run all tests with the race detector; T=TestName P=./pkg for some
	@$(if $(race),,echo "no C compiler ($$(go env CC)): the race detector is off")
	@command -v chromium >/dev/null || echo "no chromium on PATH: browser tests are skipped"
	@test -e bin/mcp || echo "no npm on PATH, or no registry: tests with the MCP reference servers are skipped"
ifneq ($(T),)
	@$(gotest) $(race) -v -run '$(T)' $(P)
else ifneq ($(P),./...)
	@$(gotest) $(race) -skip '_Alone$$' $(P)
	@$(gotest) -p 1 -parallel 2 -vet=off -run '_Alone$$' $(P)
else
	@$(gotest) $(race) -skip '_Alone$$' ./test/e2e ./gateway ./worker $$(go list ./... | grep -Fvx "$$(go list $(sequential))")
	@$(gotest) $(sequential)
	@$(gotest) -p 1 -parallel 2 -vet=off -run '_Alone$$' $(alone)
endif

test-long: bin/temporal ## Run the tests that take minutes, such as thousands of turns; their names end with _Long
	@echo "running them all at once; heavy ones wait for each other"
	CHRONICLE_LONG_TESTS=1 go test -count=1 -timeout 30m -parallel 100 -v -run '_Long$$' ./test/e2e

e2e-postgres: services ## Run the end-to-end tests on the services of docker-compose.yml, without Docker; requires PostgreSQL and curl
	deploy/local.sh sh -c 'CHRONICLE_E2E_TEMPORAL=$$TEMPORAL_ADDRESS CHRONICLE_E2E_TEMPORAL_PID_FILE=$$TEMPORAL_PID_FILE CHRONICLE_E2E_NATS=$$NATS_URL CHRONICLE_E2E_BLOB_URL=$$BLOB_URL CHRONICLE_E2E_GATEWAY=$$GATEWAY_URL CHRONICLE_E2E_PROMETHEUS=$$PROMETHEUS_URL CHRONICLE_E2E_MODEL=$$MODEL_URL $(gotest) -count=1 -tags clouds $(if $(T),-v -run "$(T)") ./internal/eventlog/blobs ./test/e2e'

check: ## Check formatting, vet, lint, workflow determinism, imports, replay and modules
	@echo "gofmt" && files=$$(gofmt -l .) && test -z "$$files" || { echo "not formatted, run gofmt -w:"; echo "$$files"; exit 1; }
	go vet ./...
	go vet -tags clouds ./worker ./starter ./test/e2e
	$(lint) staticcheck ./...
	$(lint) workflowcheck -config build/lint/workflowcheck.yaml ./...
	go test -count=1 -run "^Test(Imports|Documentation)" ./internal/repotest
	go test -run '^TestReplay' ./workflows/...
	@for tag in $$(git tag --list 'v*'); do git diff --exit-code $$tag -- workflows/testdata/histories/$${tag#v}.sum || { echo "the histories of $$tag changed; restore the file"; exit 1; }; done
	go mod tidy -diff
	go mod verify

histories: bin/temporal ## Record the histories of end-to-end tests that have none; all later versions replay them
	go test -count=1 -timeout 20m ./test/e2e -histories
	go test -count=1 -run '^TestReplayHistoriesAreUnchanged$$' ./workflows -histories

golden: ## Update the golden files of the tests
	go test $(or $(golden_packages),$(error no package has golden files)) -update

bench: $(if $(filter postgres,$(SERVER)),services,bin/temporal binaries) ## Measure latency, throughput, history and billed actions in about half an hour; B='-quick -run signal' for some, SERVER=stock or postgres
	@go build -o bin/ ./test/bench
	@$(if $(filter postgres,$(SERVER)),WORKERS=0 deploy/local.sh sh -c 'BENCH_TEMPORAL_ADDRESS=$$TEMPORAL_ADDRESS exec bin/bench $(B)',bin/bench $(stock) $(B))

soak: bin/temporal binaries ## Soak-test 100 contexts under faults and check their logs; SOAK=30s for less, SERVER=stock, S=FLAGS
	@go build -o bin/ ./test/soak
	@bin/soak $(stock) -for $(SOAK) $(S)

fuzz: bin/temporal binaries ## Fuzz contexts through all doors, and check that each answers; FUZZ=1h for more, F=FLAGS
	@go build -o bin/ ./test/fuzz
	@bin/fuzz -for $(FUZZ) $(F)

clean: ## Remove bin/; the contexts in .chronicle are kept
	rm -rf bin

# Packages with golden files.
golden_packages = $(shell grep -rl --include='*_test.go' 'eventtest/golden"' . | xargs -r -n1 dirname | sort -u)

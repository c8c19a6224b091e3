# make            the list of targets
# make run        a conversation, with all that it needs, in one command
# make test       everything, on a real Temporal server

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run dev up down build test test-long e2e-s3 e2e-postgres check histories golden bench soak clean binaries

# What to test: make test T=TestName P=./pkg
P ?= ./...
T ?=

# Flags for the benchmark: make bench B='-quick -run signal'
B ?=

# Where to measure: make bench SERVER=postgres
SERVER ?= dev

# How long faults go on, and other flags: make soak SOAK=30s S="-seed 7"
SOAK ?= 10m
S ?=

# Flags for the worker: make run W='--temporal-port 0 --ui-port 0 --nats-port 0'
W ?=

# Build tags: make build TAGS=clouds adds s3://, gs:// and azblob:// to --blob-url.
TAGS ?=
tags := $(if $(TAGS),-tags $(TAGS))

# On Linux the race detector is linked by a C compiler.
race := $(if $(shell command -v $$(go env CC)),-race)

# Tools with requirements of their own live in modules of their own.
lint := go tool -modfile=tools/lint/go.mod

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

run: bin/temporal binaries ## Talk to a context; starts all it needs, and ends it on leaving; W='FLAGS' for the worker
	@bin/worker --dev $(W) -- bin/starter chat || test $$? -eq 130

dev: bin/temporal binaries ## Run the worker with all it needs, until Ctrl-C
	@bin/worker --dev $(W)

up: ## Start docker-compose.yml, and wait until contexts are answered at 127.0.0.1:7233
	docker compose up --build --detach --wait

down: ## Stop it; its database stays
	docker compose down

build: bin/temporal binaries ## Build bin/worker, bin/starter and bin/temporal

# The go command knows itself what has changed.
binaries:
	@test -e bin/worker || echo "building bin/worker and bin/starter; the first time this takes about a minute"
	@go build $(tags) -o bin/ ./worker ./starter

bin/temporal: tools/temporal/go.mod
	@echo "building bin/temporal, Temporal's own dev server; the first time this takes about 2.5 minutes"
	@cd tools/temporal && go build -o ../../bin/temporal github.com/temporalio/cli/cmd/temporal
	@touch bin/temporal

# The servers of docker-compose.yml, for deploy/local.
production = bin/temporal-server bin/temporal-sql-tool bin/nats-server

bin/temporal-server: package = go.temporal.io/server/cmd/server
bin/temporal-sql-tool: package = go.temporal.io/server/cmd/tools/sql
bin/nats-server: package = github.com/nats-io/nats-server/v2

$(production): tools/server/go.mod
	@echo "building $@; the first time bin/temporal-server takes about 4 minutes, the others seconds"
	@cd tools/server && go build -o ../../$@ $(package)
	@touch $@

# Runs a command with what docker-compose.yml describes, without Docker.
bin/local: $(production) bin/temporal binaries
	@go build -o bin/ ./deploy/local

.PHONY: bin/local

# Runs go test, and lists what was skipped.
gotest = bin/gotest
bin/gotest:
	@go build -o bin/ ./tools/gotest

.PHONY: bin/gotest

test: bin/temporal bin/gotest ## Run all tests with the race detector; T=TestName P=./pkg for some
	@$(if $(race),,echo "no C compiler ($$(go env CC)), so the race detector is off")
	$(gotest) $(race) -timeout 20m $(if $(T),-v -run '$(T)') $(P)

# Long tests begin with a call of long.
long_tests = $(shell awk '/^func Test/ { name = $$2; sub(/[^A-Za-z0-9].*/, "", name) } /^\tlong\(t\)$$/ { print name }' e2e/*_test.go | paste -sd '|')

test-long: bin/temporal bin/gotest ## Run the tests that take minutes: thousands of turns, large states
	CHRONICLE_LONG_TESTS=1 $(gotest) -count=1 -timeout 30m -v -run '^($(long_tests))$$' ./e2e

# An S3-compatible server that is a Go module.
bin/versitygw: tools/s3/go.mod
	@echo "building $@; the first time this takes about a minute"
	@cd tools/s3 && go build -o ../../$@ github.com/versity/versitygw/cmd/versitygw
	@touch $@

e2e-s3: bin/versitygw bin/temporal bin/gotest ## Run the end-to-end tests with an S3 server as the blob store
	@go build -o bin/ ./deploy/local
	bin/local -s3 -- sh -c 'CHRONICLE_E2E_BLOB_URL=$$BLOB_URL $(gotest) -count=1 -tags clouds -timeout 20m $(if $(T),-v -run "$(T)") ./blobs ./e2e'

e2e-postgres: bin/local bin/gotest ## Run the end-to-end tests on what docker-compose.yml describes, without Docker; needs PostgreSQL installed
	bin/local -- sh -c 'CHRONICLE_E2E_TEMPORAL=$$TEMPORAL_ADDRESS CHRONICLE_E2E_TEMPORAL_PID_FILE=$$TEMPORAL_PID_FILE CHRONICLE_E2E_NATS=$$NATS_URL $(gotest) -count=1 -timeout 20m $(if $(T),-v -run "$(T)") ./e2e'

check: ## Look for mistakes without running: format, vet, lint, determinism, imports, replay, modules
	@echo "gofmt" && files=$$(gofmt -l .) && test -z "$$files" || { echo "not formatted, run gofmt -w:"; echo "$$files"; exit 1; }
	go vet ./...
	go vet -tags clouds ./worker ./starter ./e2e
	$(lint) staticcheck ./...
	$(lint) workflowcheck -config tools/lint/workflowcheck.yaml ./...
	go test -run "^Test(Imports|Documentation)" ./internal/repotest
	go test -run '^TestReplay' ./workflows/...
	@for tag in $$(git tag --list 'v*'); do git diff --exit-code $$tag -- workflows/testdata/histories/$${tag#v}.sum || { echo "the histories of $$tag changed; restore the file"; exit 1; }; done
	go mod tidy -diff
	go mod verify

histories: bin/temporal ## Record histories of stories that have none yet, for all later versions to replay
	go test -count=1 -timeout 20m ./e2e -histories
	go test -count=1 -run '^TestReplayHistoriesAreUnchanged$$' ./workflows -histories

golden: ## Rewrite the expected output of tests from what they print now
	go test $(or $(golden_packages),$(error no package has golden files)) -update

bench: $(if $(filter postgres,$(SERVER)),bin/local,bin/temporal binaries) ## Measure latency, throughput and history size, in about 9 minutes; B='-quick -run signal' for some, SERVER=postgres
	@go build -o bin/ ./bench
	@$(if $(filter postgres,$(SERVER)),bin/local -workers 0 -- sh -c 'BENCH_TEMPORAL_ADDRESS=$$TEMPORAL_ADDRESS exec bin/bench $(B)',bin/bench $(B))

soak: bin/temporal binaries ## Soak-test 100 contexts under faults and check their logs; SOAK=30s for less, S=FLAGS
	@go build -o bin/ ./bench/soak
	@bin/soak -for $(SOAK) $(S)

clean: ## Remove what was built; the contexts in .chronicle stay
	rm -rf bin

# Packages whose tests know -update.
golden_packages = $(shell grep -rl --include='*_test.go' 'eventtest/golden"' . | xargs -r -n1 dirname | sort -u)

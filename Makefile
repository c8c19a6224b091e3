# make            the list of targets
# make run        a conversation, with all that it needs, in one command
# make test       everything, on a real Temporal server

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run dev build test check golden bench soak clean binaries

# What to test: make test T=TestName P=./pkg
P ?= ./...
T ?=

# Flags for the benchmark: make bench B='-quick -run signal'
B ?=

# How long to torment: make soak SOAK=30s
SOAK ?= 10m

# Flags for the worker: make run W='--temporal-port 0 --ui-port 0 --nats-port 0'
W ?=

# On Linux the race detector is linked by a C compiler.
race := $(if $(shell command -v $$(go env CC)),-race)

# Tools with requirements of their own live in modules of their own.
lint := go tool -modfile=tools/lint/go.mod

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

run: bin/temporal binaries ## Talk to a context; starts all it needs, and ends it on leaving; W='FLAGS' for the worker
	@bin/worker --dev $(W) -- bin/starter chat || test $$? -eq 130

dev: bin/temporal binaries ## Run the worker with all it needs, until Ctrl-C
	@bin/worker --dev $(W)

build: bin/temporal binaries ## Build bin/worker, bin/starter and bin/temporal

# The go command knows itself what has changed.
binaries:
	@test -e bin/worker || echo "building bin/worker and bin/starter; the first time this takes about a minute"
	@go build -o bin/ ./worker ./starter

bin/temporal: tools/go.mod
	@echo "building bin/temporal, Temporal's own dev server; the first time this takes about 2.5 minutes"
	@cd tools && go build -o ../bin/temporal github.com/temporalio/cli/cmd/temporal
	@touch bin/temporal

test: bin/temporal ## Run all tests with the race detector; T=TestName P=./pkg for some
	@$(if $(race),,echo "no C compiler ($$(go env CC)), so the race detector is off")
	go test $(race) $(if $(T),-v -run '$(T)') $(P)

check: ## Look for mistakes without running: format, vet, lint, determinism, imports, replay, modules
	@echo "gofmt" && files=$$(gofmt -l .) && test -z "$$files" || { echo "not formatted, run gofmt -w:"; echo "$$files"; exit 1; }
	go vet ./...
	$(lint) staticcheck ./...
	$(lint) workflowcheck -config tools/lint/workflowcheck.yaml ./...
	go test -run '^TestImports' .
	go test -run '^TestReplay' ./workflows/...
	go mod tidy -diff
	go mod verify

golden: ## Rewrite the expected output of tests from what they print now
	go test $(or $(golden_packages),$(error no package has golden files)) -update

bench: bin/temporal binaries ## Measure against a bare loop and a direct client, in about 5 minutes; B='-quick -run signal' for some
	@go build -o bin/ ./bench
	@bin/bench $(B)

soak: bin/temporal binaries ## Torment 100 contexts and check their logs; SOAK=30s for a short while
	@go build -o bin/ ./bench/soak
	@bin/soak -for $(SOAK)

clean: ## Remove what was built; the contexts in .chronicle stay
	rm -rf bin

# Packages whose tests know -update.
golden_packages = $(shell grep -rl --include='*_test.go' 'flag.Bool("update"' . | xargs -r -n1 dirname | sort -u)

# make lists the targets, make run starts everything and chats, make test runs all tests on a real Temporal server.
.DEFAULT_GOAL := help
.PHONY: help run dev example up down build binaries test test-long e2e-postgres services check vet staticcheck workflowcheck histories golden bench soak fuzz

# P and T select tests: make test T=TestName P=./pkg. SOAK and FUZZ are how long these run. W, B, S and F are flags of the worker, bench,
# soak and fuzz: make fuzz FUZZ=1h F="-seed 7". SERVER is the Temporal server of test, bench and soak: dev, stock (its default settings)
# or, for bench, postgres. TAGS=clouds adds s3://, gs:// and azblob:// to --blob-url.
P ?= ./...
SOAK ?= 10m
FUZZ ?= 2m
SERVER ?= dev
stock = $(if $(filter stock,$(SERVER)),-stock)
export CHRONICLE_E2E_STOCK := $(if $(stock),1)

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

run: build ## Chat with a context; starts everything it needs and stops it on exit; W='FLAGS' for the worker
	@bin/worker --dev $(W) -- bin/starter chat || test $$? -eq 130

dev: build ## Run the worker and everything it needs until Ctrl-C
	@bin/worker --dev $(W)

example: ## Talk to the agent in examples/support, with a key in OPENAI_API_KEY or another server in OPENAI_BASE_URL
	@test -n "$$OPENAI_API_KEY$$OPENAI_BASE_URL" || { echo "no model: set OPENAI_API_KEY, or OPENAI_BASE_URL for another server" >&2; exit 1; }
	@$(MAKE) --no-print-directory build
	@go build -o bin/ ./examples/support
	@echo "Write to the shop as a customer, for example about your order A-1001; Ctrl-D exits"
	@bin/worker --dev $(W) -- bin/support || test $$? -eq 130

up: ## Start docker-compose.yml and wait until the workers are ready; Temporal is at 127.0.0.1:7233
	docker compose up --build --detach --wait

down: ## Stop docker-compose.yml; the database is kept
	docker compose down

build: bin/temporal binaries ## Build bin/worker, bin/starter and bin/temporal

binaries:
	@test -e bin/worker || echo "building bin/worker and bin/starter; the first time this takes about a minute"
	@go build $(if $(TAGS),-tags $(TAGS)) -ldflags "-s -w" -o bin/ ./worker ./starter

# A link to the temporal on PATH if it contains the server that build/temporal pins, else a build.
bin/temporal: build/temporal/go.mod
	@mkdir -p bin && rm -f $@ && server=$$(awk '$$1 == "go.temporal.io/server" { print substr($$2, 2) }' $<) && \
	if temporal --version 2>/dev/null | grep -qF "(Server $$server,"; then ln -s "$$(command -v temporal)" $@; else \
	echo "building $@; the first time this takes about 2.5 minutes" && cd build/temporal && go build -ldflags "-s -w" -o ../../bin/ tool && touch ../../$@; fi

# What deploy/local.sh starts. Prometheus has no service discovery in clouds, whose libraries are most of it.
services: TAGS = clouds
services: build
	@echo "building the services of docker-compose.yml; the first time this takes about 8 minutes"
	@for module in server s3 prometheus; do (cd build/$$module && go build -tags remove_all_sd,enable_dns_sd -ldflags "-s -w" -o ../../bin/ tool) || exit; done
	@ln -sf server bin/temporal-server && ln -sf sql bin/temporal-sql-tool

# The reference MCP servers, clients of other protocols, and accessibility checks. Without npm or its registry, their tests are skipped.
bin/mcp: build/mcp/package-lock.json
bin/axe: build/axe/package-lock.json
bin/openai: test/clients/openai/package-lock.json
bin/aisdk: test/clients/aisdk/package-lock.json
bin/agui: test/clients/agui/package-lock.json
bin/a2a: test/clients/a2a/package-lock.json
bin/typescript: test/clients/typescript/package-lock.json
packages = bin/mcp bin/axe bin/openai bin/aisdk bin/agui bin/a2a bin/typescript
$(packages):
	@! command -v npm >/dev/null || { mkdir -p $@ && cp $(<D)/package*.json $@ && \
		npm ci --prefix $@ --ignore-scripts --no-audit --no-fund --loglevel=error && touch $@ || rm -rf $@; }

# Many tests wait for servers, so more run at a time than there are processors. The race detector needs a C compiler. make check vets.
gotest = GORACE="atexit_sleep_ms=100 $$GORACE" go test -vet=off -timeout 20m -parallel $$((2 * $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)))
race := $(if $(shell command -v $$(go env CC)),-race)

# Packages that start no goroutines: the race detector finds nothing in them and multiplies their time by ten.
sequential = ./event ./internal/formats/agent ./internal/formats/chat ./reducer/transcript
# Packages with tests whose names end with _Alone: large ones, and those that kill workers, run at the end and without the race detector.
alone = ./llm ./test/e2e
all = $(filter ./...,$(P))

test: bin/temporal $(packages) ## Run all tests with the race detector; T=TestName P=./pkg for some, SERVER=stock for default settings
	@$(if $(race),,echo "no C compiler ($$(go env CC)): the race detector is off")
	@command -v chromium >/dev/null || echo "no chromium on PATH: browser tests are skipped"
	@ls -d $(packages) >/dev/null 2>&1 || echo "no npm on PATH, or no registry: tests with the MCP reference servers, npm clients and axe-core are skipped"
ifneq ($(T),)
	@$(gotest) $(race) -v -run '$(T)' $(P)
else
	@$(gotest) $(race) -skip '_Alone$$' $(if $(all),./test/e2e ./gateway $$(go list ./... | grep -Fvx "$$(go list $(sequential))"),$(P))
	@$(if $(all),$(gotest) $(sequential))
	@$(if $(all)$(filter $(alone),$(P)),$(gotest) -p 1 -parallel 8 -run '_Alone$$' $(if $(all),$(alone),$(P)))
endif

test-long: bin/temporal ## Run the tests that take minutes, such as floods; their names end with _Long
	CHRONICLE_LONG_TESTS=1 go test -vet=off -count=1 -timeout 30m -parallel 100 -v -run '_Long$$' ./test/e2e

e2e-postgres: services ## Run the end-to-end tests on the services of docker-compose.yml, without Docker; requires PostgreSQL and curl
	deploy/local.sh sh -c 'CHRONICLE_E2E_TEMPORAL=$$TEMPORAL_ADDRESS CHRONICLE_E2E_TEMPORAL_PID_FILE=$$TEMPORAL_PID_FILE CHRONICLE_E2E_NATS=$$NATS_URL CHRONICLE_E2E_BLOB_URL=$$BLOB_URL CHRONICLE_E2E_GATEWAY=$$GATEWAY_URL CHRONICLE_E2E_PROMETHEUS=$$PROMETHEUS_URL CHRONICLE_E2E_MODEL=$$MODEL_URL $(gotest) -count=1 -tags clouds $(if $(T),-v -run "$(T)") ./internal/eventlog/blobs ./test/e2e'

check: vet staticcheck workflowcheck ## Check formatting, vet, lint, workflow determinism, imports, replay and modules
	@echo "gofmt" && files=$$(gofmt -l .) && test -z "$$files" || { echo "not formatted, run gofmt -w:"; echo "$$files"; exit 1; }
	go test -vet=off -count=1 -run "^Test(Imports|Documentation)" ./internal/repotest
	go test -vet=off -run '^TestReplay' ./workflows/...
	@for tag in $$(git tag --list 'v*'); do git diff --exit-code $$tag -- workflows/testdata/histories/$${tag#v}.sum || { echo "the histories of $$tag changed; restore the file"; exit 1; }; done
	go mod tidy -diff
	go mod verify

vet: ; go vet ./... && go vet -tags clouds ./worker ./starter ./test/e2e
staticcheck workflowcheck:
	go tool -modfile=build/lint/go.mod $@ $(if $(filter work%,$@),-config build/lint/workflowcheck.yaml) ./...

histories: bin/temporal ## Record the histories of end-to-end tests that have none; all later versions replay them
	go test -count=1 -timeout 20m ./test/e2e -histories
	go test -count=1 -run '^TestReplayHistoriesAreUnchanged$$' ./workflows -histories

golden: ## Update the golden files of the tests
	go test $$(grep -rl --include='*_test.go' 'eventtest/golden"' . | xargs -n1 dirname | sort -u) -update

bench: $(if $(filter postgres,$(SERVER)),services,build) ## Measure latency, throughput, history and billed actions; B='-quick -run signal' for some, SERVER=stock or postgres
	@go build -o bin/ ./test/bench
	@$(if $(filter postgres,$(SERVER)),WORKERS=0 deploy/local.sh sh -c 'BENCH_TEMPORAL_ADDRESS=$$TEMPORAL_ADDRESS exec bin/bench $(B)',bin/bench $(stock) $(B))

soak: build ## Soak-test 100 contexts under faults and check their logs; SOAK=30s for less, SERVER=stock, S=FLAGS
	@go build -o bin/ ./test/soak
	@bin/soak $(stock) -for $(SOAK) $(S)

fuzz: build ## Fuzz contexts through all doors, and check that each answers; FUZZ=1h for more, F=FLAGS
	@go build -o bin/ ./test/soak
	@bin/soak -hostile -outages=false -faults 0 -contexts 4 -workers 1 -seed 1 -for $(FUZZ) $(F)

.DEFAULT_GOAL := help
.PHONY: help test precision precision-long replay plots proof controls mutants mutants-go clients servers-32 load sum bench check luacheck

# $(call need,tool ...) stops, and names the first of these tools that is not on PATH.
need = @for tool in $(1); do command -v $$tool >/dev/null || { echo "make $@: $$tool is not on PATH"; exit 1; }; done

# The path of a tool that .ci/tools pins, built when it has not been.
tool = "$$(go -C '$(CURDIR)/.ci/tools' tool -n $(1))"

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## run all tests, and name those skipped; REQUIRE_SERVERS=1 makes a missing server a failure
	$(call need,go)
	@echo 'Every package, then precision/bench, on every server found. The first build takes a minute or two.'
	$(call tool,gotestsum) --format standard-quiet -- -count=1 ./...
	cd precision/bench && $(call tool,gotestsum) --format standard-quiet -- -count=1 ./...

precision: ## hold the scripts against exact integers; CASES= and SEED= widen or repeat it; precision/report/ is the report
	$(call need,go)
	@echo 'The scripts against exact integers, on every server found: a minute. The first build takes one or two more.'
	go run ./precision/cmd/precision -report precision/report $(if $(CASES),-cases '$(CASES)') $(if $(SEED),-seed '$(SEED)')

precision-long: ## 10^9 native decisions against the oracle, with a hash to compare
	$(call need,go)
	go run ./precision/cmd/precision -long 1000000000

replay: ## play one trace, TRACE='...' as a broken claim names it
	$(call need,go)
	@test -n '$(TRACE)' || { echo "usage: make replay TRACE='...'"; exit 2; }
	go run ./precision/cmd/precision -replay '$(TRACE)'

plots: ## draw precision/internal/plots/*.svg anew
	$(call need,go)
	go test -count=1 ./precision/internal/plots -run '^TestPlots$$' -update

proof: ## prove the arithmetic of the scripts: gappa, and tests of what it cannot state
	$(call need,gappa go)
	@for proof in precision/proof/*.g; do echo gappa $$proof; gappa -Eno-auto-dichotomy $$proof || exit 1; done
	REQUIRE_SERVERS=1 go test -count=1 -v ./precision -run '^Test(Proof|Lemma)'

controls: ## play wrong scripts, one published fault each; the suite must reject them
	$(call need,go)
	go run ./precision/cmd/precision -controls

mutants: ## change the scripts a token at a time; the suite must notice, and the vectors alone. ASSET=gcra_v2 tries one
	$(call need,go)
	go run ./precision/internal/mutants $(if $(ASSET),-asset '$(ASSET)')

mutants-go: ## change the Go code that decides an operator at a time; its tests must notice. PKG= tries one package, SAMPLE=6 about one in six of the large ones
	$(call need,go)
	go run ./precision/internal/gomutants -gremlins $(call tool,gremlins) $(if $(PKG),-package '$(PKG)') $(if $(SAMPLE),-sample '$(SAMPLE)')

clients: ## play the vectors by the client libraries of other languages that are installed, on REDIS_URL or a server of its own
	vectors/clients/run.sh

servers-32: ## make 32-bit redis-servers for `make test` of Debian packages, in SERVERS_32=/var/cache/tatami/servers-32
	.ci/servers-32

load: ## load the scripts into the server or cluster at REDIS_URL=redis://host:port
	$(call need,go)
	go run ./loader/cmd/tatami load $(if $(REDIS_URL),--redis "$$REDIS_URL")

sum: ## bring the candidates of lua/lua.sum up to date; released lines stay
	$(call need,go)
	go test -count=1 ./lua -run '^TestSum$$' -update

bench: ## measure the scripts beside other limiters; SERVER=redis:8.0, or a path, counts its instructions; FLAGS='-speed -json' chooses
	$(call need,go $(if $(SERVER),valgrind,redis-server))
	go -C precision/bench run . $(if $(SERVER),-server '$(if $(wildcard $(SERVER)),$(abspath $(SERVER)),$(SERVER))') $(FLAGS)

check: ## gofmt, vet, staticcheck, each go.mod, lua.sum, and luacheck where there is one
	$(call need,go gofmt)
	@unformatted=$$(gofmt -l .) && { test -z "$$unformatted" || { echo "gofmt: run it on $$unformatted"; exit 1; }; }
	go vet ./...
	$(call tool,staticcheck) ./...
	go mod tidy -diff
	go -C precision/bench vet ./...
	cd precision/bench && $(call tool,staticcheck) ./...
	go -C precision/bench mod tidy -diff
	go -C .ci/tools mod tidy -diff
	go test -count=1 ./lua -run '^TestSum'
	@$(MAKE) --no-print-directory luacheck

luacheck:
	@if command -v luacheck >/dev/null; then \
		echo luacheck lua/*.lua; \
		luacheck --std lua51 --read-globals redis KEYS --globals ARGV --no-color -- lua/*.lua; \
	elif test "$$REQUIRE_SERVERS" = 1; then \
		echo 'REQUIRE_SERVERS=1: luacheck is not on PATH'; exit 1; \
	else \
		echo 'skipped: luacheck is not on PATH'; \
	fi

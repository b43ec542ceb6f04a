.DEFAULT_GOAL := help
.PHONY: help test precision load sum check

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## run all tests; REQUIRE_SERVERS=1 makes a missing server a failure
	go test -count=1 ./...

precision: ## hold the scripts against exact integers; CASES= and SEED= widen or repeat it
	go run ./precision/cmd/precision $(if $(CASES),-cases '$(CASES)') $(if $(SEED),-seed '$(SEED)')

load: ## load the scripts into the server or cluster at REDIS_URL=redis://host:port
	go run ./loader/cmd/tatami load $(if $(REDIS_URL),--redis "$$REDIS_URL")

sum: ## bring the candidates of lua/lua.sum up to date; released lines stay
	go test -count=1 ./lua -run '^TestSum$$' -update

check: ## gofmt, vet, staticcheck, go.mod, lua.sum, and luacheck where there is one
	@unformatted=$$(gofmt -l .) && { test -z "$$unformatted" || { echo "gofmt: run it on $$unformatted"; exit 1; }; }
	go vet ./...
	go tool staticcheck ./...
	go mod tidy -diff
	go test -count=1 ./lua -run '^TestSum'
	@if command -v luacheck >/dev/null; then \
		echo luacheck lua/*.lua; \
		luacheck --std lua51 --read-globals redis KEYS ARGV --no-color -- lua/*.lua; \
	else \
		echo 'skipped: luacheck is not on PATH'; \
	fi

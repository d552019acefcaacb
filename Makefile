# The project's commands. `make` lists them.

.DEFAULT_GOAL := help
.PHONY: help build test test-all lint fuzz chaos ci

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

build: ## build the command: ./fermata
	go build -o fermata ./cmd/fermata

test: ## run the tests of every module
	go test work

test-all: ## also run tests that take long or need PostgreSQL; what is missing fails
	FERMATA_TESTS=all go test -timeout 30m work

lint: ## run gofmt, vet, staticcheck, tidy and workflowcheck
	.ci/run lint

fuzz: ## give every fuzz target a few hundred inputs
	.ci/run fuzz

chaos: ## kill workers and servers for two minutes, with the plan of one seed
	.ci/run chaos

ci: ## run all that decides whether a change may land
	.ci/run

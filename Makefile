# The project's commands. `make` lists them.

.DEFAULT_GOAL := help
.PHONY: help build test test-all lint fuzz chaos deps ci

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

build: ## build the command: ./fermata
	go build -o fermata ./cmd/fermata

test: ## run the tests of every module
	go test work

test-all: ## also run tests that take long, and full searches; a test that lacks a program fails
	FERMATA_TESTS=all go test -timeout 30m work

lint: ## run golangci-lint, tidy and workflowcheck
	.ci/run lint

fuzz: ## give every fuzz target a few hundred inputs
	.ci/run fuzz

chaos: ## kill workers and servers for two minutes, with the plan of one seed
	.ci/run chaos

deps: ## count the packages in the command, by module, and show the size of ./fermata
	@go list -deps -f '{{with .Module}}{{.Path}}{{else}}std{{end}}' ./cmd/fermata | sort | uniq -c | sort -rn | head -n 20
	@go list -deps ./cmd/fermata | wc -l
	@go build -o fermata ./cmd/fermata && ls -l fermata

ci: ## run all that decides whether a change may land
	.ci/run

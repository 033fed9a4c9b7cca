# ip-reaper: `make` lists what there is to do.

SHELL := /bin/sh
BIN := integration/bin
TOOLS := integration/tools
DEMO_ASSETS := $(BIN)/etcd $(BIN)/kube-apiserver $(BIN)/kubectl $(BIN)/whereabouts
ASSETS := $(DEMO_ASSETS) $(BIN)/calico-ipam $(BIN)/calicoctl $(BIN)/kube-controllers \
	$(BIN)/pushgateway $(BIN)/promtool

# The modules that hold code of ours, and the ones that only pin tools.
MODULES := . integration
TOOL_MODULES := $(patsubst %/go.mod,%,$(wildcard $(TOOLS)/*/go.mod))

BENCH ?= .
FUZZTIME ?= 20s
TESTFLAGS ?= -shuffle=on -count=1 -timeout=20m

VERSION ?= $(or $(shell git describe --tags --always --dirty 2>/dev/null),dev)
KUBERNETES_VERSION := $(shell sed -n 's|^\tk8s.io/kubernetes v|v|p' $(TOOLS)/kubernetes/go.mod | cut -d' ' -f1)
KUBERNETES_LDFLAGS := -s -w \
	-X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION) \
	-X k8s.io/client-go/pkg/version.gitVersion=$(KUBERNETES_VERSION)

# build_tool builds package $(2) of the tools module $(1) as the target.
build_tool = cd $(TOOLS)/$(1) && CGO_ENABLED=0 go build -trimpath -ldflags "$(or $(3),-s -w)" -o "$(CURDIR)/$@" $(2) && touch "$(CURDIR)/$@"

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: bin/ip-reaper ## Build the binary: bin/ip-reaper

# go decides what is out of date. The version is stamped by -X alone, so that a
# checkout which git refuses to describe still builds.
.PHONY: bin/ip-reaper $(BIN)/ip-reaper
bin/ip-reaper $(BIN)/ip-reaper:
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION)" -o $@ .

.PHONY: assets
assets: $(ASSETS) ## Build the real parts of the tests from their modules (once, about 7 minutes)

$(BIN)/etcd: $(TOOLS)/etcd/go.mod $(TOOLS)/etcd/go.sum
	$(call build_tool,etcd,go.etcd.io/etcd/server/v3)

$(BIN)/kube-apiserver $(BIN)/kubectl: $(TOOLS)/kubernetes/go.mod $(TOOLS)/kubernetes/go.sum
	$(call build_tool,kubernetes,k8s.io/kubernetes/cmd/$(@F),$(KUBERNETES_LDFLAGS))

$(BIN)/whereabouts: $(TOOLS)/whereabouts/go.mod $(TOOLS)/whereabouts/go.sum
	$(call build_tool,whereabouts,github.com/k8snetworkplumbingwg/whereabouts/cmd)

# The plugin is Calico's IPAM plugin when it is called by this name.
$(BIN)/calico-ipam: $(TOOLS)/calico/go.mod $(TOOLS)/calico/go.sum
	$(call build_tool,calico,github.com/projectcalico/calico/cni-plugin/cmd/calico)

$(BIN)/calicoctl: $(TOOLS)/calico/go.mod $(TOOLS)/calico/go.sum
	$(call build_tool,calico,github.com/projectcalico/calico/calicoctl/calicoctl)

$(BIN)/kube-controllers: $(TOOLS)/calico/go.mod $(TOOLS)/calico/go.sum
	$(call build_tool,calico,github.com/projectcalico/calico/kube-controllers/cmd/kube-controllers)

$(BIN)/pushgateway: $(TOOLS)/prometheus/go.mod $(TOOLS)/prometheus/go.sum
	$(call build_tool,prometheus,github.com/prometheus/pushgateway)

# promtool links the clients of every cloud that Prometheus discovers targets in,
# unless it is told not to.
$(BIN)/promtool: $(TOOLS)/prometheus/go.mod $(TOOLS)/prometheus/go.sum
	$(call build_tool,prometheus,-tags remove_all_sd github.com/prometheus/prometheus/cmd/promtool)

$(BIN)/golangci-lint: $(TOOLS)/lint/go.mod $(TOOLS)/lint/go.sum
	$(call build_tool,lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint)

$(BIN)/govulncheck: $(TOOLS)/lint/go.mod $(TOOLS)/lint/go.sum
	$(call build_tool,lint,golang.org/x/vuln/cmd/govulncheck)

# Built first and then exec'd, so that Ctrl-C reaches the demo and nothing else.
.PHONY: demo
demo: $(DEMO_ASSETS) $(BIN)/ip-reaper ## Play an outage and its end on a real API server (under 30 s once the parts are built)
	@cd integration && CGO_ENABLED=0 go build -o bin/demo ./demo && exec bin/demo

# The race detector needs cgo and thereby a C compiler that can link.
.PHONY: test
test: assets $(BIN)/ip-reaper ## Run all tests, those on the real parts included
	@race=-race cgo=1; \
	if ! printf '#include <stdlib.h>\nint main(void) { return 0; }\n' | $$(go env CC) -x c -o /dev/null - 2>/dev/null; then \
		race= cgo=0; \
		echo '*** NO WORKING C COMPILER: the tests run WITHOUT the race detector ***' >&2; \
	fi; \
	for module in $(MODULES); do \
		echo "go test $$race $(TESTFLAGS) ./...   # in $$module"; \
		(cd $$module && CGO_ENABLED=$$cgo go test $$race $(TESTFLAGS) ./...) || exit 1; \
	done

.PHONY: lint
lint: $(BIN)/golangci-lint $(BIN)/govulncheck ## Check format, vet, linters, tidiness and known vulnerabilities
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "gofmt -w is needed for:"; echo "$$unformatted"; exit 1; }
	@failed=0; for module in $(MODULES) $(TOOL_MODULES); do \
		echo "go mod tidy -diff   # in $$module"; \
		(cd $$module && go mod tidy -diff) || failed=1; \
	done; exit $$failed
	@failed=0; for module in $(MODULES); do \
		echo "go vet, golangci-lint run   # in $$module"; \
		(cd $$module && go vet ./... && "$(CURDIR)/$(BIN)/golangci-lint" run --config "$(CURDIR)/.golangci.yml" ./...) || failed=1; \
	done; exit $$failed
	@$(TOOLS)/lint/vulncheck.sh $(BIN)/govulncheck ./...

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (20s)
	@grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort | while IFS=: read -r file func; do \
		target=$${func#func }; \
		echo "$$target in $${file%/*}"; \
		(cd "$${file%/*}" && go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) .) || exit 1; \
	done

.PHONY: bench
bench: assets $(BIN)/ip-reaper ## Run the benchmarks that match BENCH (all)
	@for module in $(MODULES); do \
		(cd $$module && go test -run '^$$' -bench '$(BENCH)' -benchmem ./...) || exit 1; \
	done

.PHONY: cover
cover: ## Measure what the tests of the root module cover: coverage.out, coverage.html
	go test -count=1 -coverpkg=./... -coverprofile=coverage.out ./...
	go tool cover -html=coverage.out -o coverage.html
	@go tool cover -func=coverage.out | tail -n 1

.PHONY: clean
clean: ## Remove all that was built, the real parts of the tests included
	rm -rf bin $(BIN) coverage.out coverage.html

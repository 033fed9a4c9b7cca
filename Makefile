# ip-reaper: `make` lists what there is to do.

SHELL := /bin/sh
BIN := integration/bin
TOOLS := integration/tools
# etcd, API server and kubectl are those of setup-envtest where its variable is set.
KUBE_ASSETS := $(if $(KUBEBUILDER_ASSETS),kubebuilder-assets,$(addprefix $(BIN)/,etcd kube-apiserver kubectl))
DEMO_ASSETS := $(KUBE_ASSETS) $(BIN)/whereabouts
CALICO_ASSETS := $(BIN)/calico-ipam $(BIN)/calicoctl $(BIN)/kube-controllers
BENCH_ASSETS := $(DEMO_ASSETS) $(CALICO_ASSETS) $(BIN)/whereabouts-reconciler $(BIN)/whereabouts-reconciler-map
ASSETS := $(DEMO_ASSETS) $(CALICO_ASSETS) $(BIN)/host-local $(BIN)/pushgateway $(BIN)/promtool

# The parts are built side by side, unless -j says how many jobs there are. Other goals, and
# several of them, may not go side by side.
ifneq ($(filter assets demo test ship exhaustive versions gobench bench bench-short,$(MAKECMDGOALS)),)
ifeq ($(strip $(words $(MAKECMDGOALS)) $(filter -j% --jobs%,$(MAKEFLAGS))),1)
MAKEFLAGS += -j3
endif
endif

# The modules that hold code of ours, and the ones that only pin tools.
TOOL_MODULES := $(patsubst %/go.mod,%,$(wildcard $(TOOLS)/*/go.mod))
MODULES := . integration $(foreach module,$(TOOL_MODULES),$(if $(wildcard $(module)/*.go $(module)/*/*.go),$(module)))
TOOL_MODULES := $(filter-out $(MODULES),$(TOOL_MODULES))

# Those that golangci-lint sees too: the others are one small main around a foreign program.
LINTED := $(filter-out $(TOOLS)/coredns $(TOOLS)/whereabouts,$(MODULES))

# The folders of integration whose tests run the engine in their own process, which make exhaustive
# runs with the race detector. The others run the binary, of which the detector sees nothing.
RACED := calico run whereabouts

# What make ship tests: ship-changed runs it if this differs from BASE.
SHIPPED := .ci .github Dockerfile Makefile README.md backends deploy docs examples go.mod go.sum policy reaper \
	$(addprefix integration/,ship go.mod go.sum kit tools)
BASE ?= origin/main

BENCH ?= .
BENCHFLAGS ?=
FUZZTIME ?= 20s
TESTFLAGS ?= -shuffle=on -count=1 -timeout=20m
EXHAUSTIVEFLAGS ?= -shuffle=on -count=1 -timeout=40m

# The version is the tag of IMAGE, if one is given, or else what git says.
TAG := $(word 2,$(subst :, ,$(notdir $(IMAGE))))
VERSION ?= $(or $(TAG),$(shell git describe --tags --always --dirty 2>/dev/null),dev)
COMMIT ?= $(shell git describe --always --abbrev=40 --exclude='*' --dirty 2>/dev/null)
IMAGE ?= ghcr.io/ip-reaper/ip-reaper:$(VERSION)
CHART ?= ghcr.io/ip-reaper/charts/ip-reaper:$(VERSION:v%=%)
IMAGE_BYTES := 45000000

# With commas or spaces between them. A release is for four platforms if PLATFORMS is not given, and an
# image for that of the builder.
comma := ,
platforms = $(subst $(comma), ,$(PLATFORMS))

# The version that the tools module $(1) pins, and the flags that stamp its programs.
kubernetes_version = $(shell sed -n 's|^\tk8s.io/kubernetes v|v|p' $(TOOLS)/$(1)/go.mod | cut -d' ' -f1)
kubernetes_ldflags = -s -w \
	-X k8s.io/component-base/version.gitVersion=$(call kubernetes_version,$(1)) \
	-X k8s.io/client-go/pkg/version.gitVersion=$(call kubernetes_version,$(1))
KUBERNETES_LDFLAGS := $(call kubernetes_ldflags,kubernetes)

# The minor version that all tests run on, and those that make versions runs them on.
KUBERNETES_MINOR := $(shell echo '$(call kubernetes_version,kubernetes)' | sed 's|^v\(1\.[0-9]*\)\..*|\1|')
VERSIONS ?= $(sort $(KUBERNETES_MINOR) $(patsubst $(TOOLS)/kubernetes-%/go.mod,%,$(wildcard $(TOOLS)/kubernetes-*/go.mod)))

# build_tool builds package $(2) of the tools module $(1) as the target.
build_tool = @echo "building $@" >&2 && cd $(TOOLS)/$(1) && CGO_ENABLED=0 go build -trimpath -ldflags "$(or $(3),-s -w)" -o "$(CURDIR)/$@" $(2) && touch "$(CURDIR)/$@"

# go_build builds the program. grpcnotrace leaves out a page for browsers whose
# templates would make the program a third larger.
go_build = CGO_ENABLED=0 go build -tags grpcnotrace -trimpath -buildvcs=false \
	-ldflags "-s -w -X github.com/ip-reaper/ip-reaper/reaper/cli.version=$(VERSION) -X github.com/ip-reaper/ip-reaper/reaper/cli.commit=$(COMMIT)"

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: bin/ip-reaper ## Build the binary: bin/ip-reaper

# go decides what is out of date. The version is stamped by -X alone, so that a
# checkout which git refuses to describe still builds.
.PHONY: bin/ip-reaper $(BIN)/ip-reaper
bin/ip-reaper $(BIN)/ip-reaper:
	$(go_build) -o $@ .

# What an image has, in the folder FILES. A layer holds the times of its files, so they get
# one that does not change.
.PHONY: image-files
image-files: $(BIN)/release
	@mkdir -p '$(FILES)/licenses'
	@GOOS=linux $(go_build) -o '$(FILES)/ip-reaper' .
	@$(BIN)/release notices '$(FILES)/licenses/THIRD_PARTY_NOTICES' '$(FILES)/ip-reaper'
	@cp LICENSE '$(FILES)/licenses'
	@chmod -R u=rwX,go=rX '$(FILES)' && chmod 0755 '$(FILES)/ip-reaper' && find '$(FILES)' -exec touch -d @0 {} +

.PHONY: image
image: $(if $(PLATFORMS),image-index,image-local) ## Build the image IMAGE with Docker, or push one for PLATFORMS=linux/amd64,linux/arm64; pulls nothing

# Needs no Docker. The login is that of docker or crane.
.PHONY: image-index
image-index: $(BIN)/release $(BIN)/crane
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	for platform in $(platforms); do \
		GOOS=$${platform%%/*} GOARCH=$${platform#*/} $(go_build) -o "$$folder/$$platform/ip-reaper" . || exit; \
	done && \
	$(BIN)/release notices "$$folder/notices" "$$folder"/*/*/ip-reaper && \
	(cd $(TOOLS)/image && go run . release -name $(IMAGE) -version $(VERSION) -commit $(COMMIT) \
		-created "$$(git log -1 --format=%ct)" -license '$(CURDIR)/LICENSE' -notices "$$folder/notices" \
		-layout "$$folder/layout" "$$folder"/*/*/ip-reaper) >/dev/null && \
	$(BIN)/crane push "$$folder/layout" $(IMAGE)

# The classic builder and BuildKit both do; neither pulls anything.
.PHONY: image-local
image-local:
	@context=$$(mktemp -d) && trap 'rm -rf "$$context"' EXIT && \
	$(MAKE) --no-print-directory --silent image-files FILES="$$context" && \
	docker build --quiet --no-cache --target local --file Dockerfile --tag $(IMAGE) \
		--build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) "$$context" && \
	size=$$(docker image inspect --format '{{.Size}}' $(IMAGE)) && \
	echo "$(IMAGE), $(VERSION) for $$(docker image inspect --format '{{.Os}}/{{.Architecture}}' $(IMAGE)): $$size bytes uncompressed, at most $(IMAGE_BYTES)" && \
	{ [ "$$size" -le $(IMAGE_BYTES) ] || { echo "the image is too large" >&2; exit 1; }; }

.PHONY: change
change: $(BIN)/changie ## Ask for a change, and note it in docs/changes/unreleased
	CHANGIE_CONFIG_PATH=docs/changes/changie.yaml $(BIN)/changie new

MAN_DIR ?= $(CURDIR)/dist/man

# The settings are those of go_build, so that its compiled packages serve here too:
# otherwise, all of them are compiled again.
.PHONY: man
man: ## Write the man pages of all commands to dist/man
	cd $(TOOLS)/man && CGO_ENABLED=0 go run -tags grpcnotrace -trimpath . '$(VERSION)' "$(MAN_DIR)"

.PHONY: changelog
changelog: $(BIN)/changie ## Gather docs/changes under VERSION in CHANGELOG.md, and have manifests and chart name it
	@$(TOOLS)/release/changelog.sh $(BIN)/changie '$(VERSION)' "$$(date -u +%F)"

.PHONY: release
release: ## Write the release VERSION of the commit to dist/: archives, checksums, SBOMs
	@$(TOOLS)/release/release.sh '$(VERSION)' $(or $(platforms),linux/amd64 linux/arm64 darwin/amd64 darwin/arm64)

.PHONY: sums
sums: ## Print what this machine made in dist/, for AGAIN_SUMS of another one
	@$(TOOLS)/release/sums.sh dist

# AGAIN is a folder with checksums.txt and provenance.intoto.json of another machine.
.PHONY: check-release
check-release: ## Refuse dist/ unless it is whole, has nothing else, and AGAIN has the same bytes
	@$(TOOLS)/release/check.sh '$(AGAIN)'

.PHONY: sign
sign: ## Sign the release in dist/, checked against AGAIN, by the key in MINISIGN_SECRET_KEY
	@$(TOOLS)/release/sign.sh '$(AGAIN)'

# The login is that of docker or crane.
.PHONY: publish-image publish-chart
publish-image: $(BIN)/crane ## Push the image of the release VERSION in dist/ to IMAGE, as it is
	@$(TOOLS)/image/publish.sh $(BIN)/crane 'dist/ip-reaper_$(VERSION)_image.tar' '$(IMAGE)'

publish-chart: $(BIN)/crane ## Push the chart of the release VERSION in dist/ to CHART, for helm and Flux
	@$(TOOLS)/image/publish.sh $(BIN)/crane 'dist/ip-reaper-$(VERSION:v%=%).tgz' '$(CHART)'

.PHONY: kubebuilder-assets
kubebuilder-assets:
	@echo 'using etcd, kube-apiserver and kubectl of KUBEBUILDER_ASSETS=$(KUBEBUILDER_ASSETS):' >&2 && \
	'$(KUBEBUILDER_ASSETS)/etcd' --version | head -n 1 >&2 && '$(KUBEBUILDER_ASSETS)/kube-apiserver' --version >&2 && \
	'$(KUBEBUILDER_ASSETS)/kubectl' version --client >&2

.PHONY: assets
assets: $(ASSETS) ## Build the real parts of the tests from their modules (once, about 15 minutes)

$(BIN)/etcd: $(TOOLS)/etcd/go.mod $(TOOLS)/etcd/go.sum
	$(call build_tool,etcd,go.etcd.io/etcd/server/v3)

$(BIN)/kube-apiserver $(BIN)/kubectl: $(TOOLS)/kubernetes/go.mod $(TOOLS)/kubernetes/go.sum
	$(call build_tool,kubernetes,k8s.io/kubernetes/cmd/$(@F),$(KUBERNETES_LDFLAGS))

# Each other Kubernetes is in a folder of its own, and the pinned one there as well.
$(BIN)/kubernetes-%/kube-apiserver: $(TOOLS)/kubernetes-%/go.mod $(TOOLS)/kubernetes-%/go.sum
	$(call build_tool,kubernetes-$*,k8s.io/kubernetes/cmd/$(@F),$(call kubernetes_ldflags,kubernetes-$*))

$(BIN)/kubernetes-%/kubectl: $(TOOLS)/kubernetes-%/go.mod $(TOOLS)/kubernetes-%/go.sum
	$(call build_tool,kubernetes-$*,k8s.io/kubernetes/cmd/$(@F),$(call kubernetes_ldflags,kubernetes-$*))

$(BIN)/kubernetes-$(KUBERNETES_MINOR)/kube-apiserver $(BIN)/kubernetes-$(KUBERNETES_MINOR)/kubectl: \
$(BIN)/kubernetes-$(KUBERNETES_MINOR)/%: $(BIN)/%
	mkdir -p $(@D) && ln -f $< $@

$(BIN)/whereabouts: $(TOOLS)/whereabouts/go.mod $(TOOLS)/whereabouts/go.sum
	$(call build_tool,whereabouts,github.com/k8snetworkplumbingwg/whereabouts/cmd)

# The reconciler as it was published, and with a map in place of its quadratic scan.
$(BIN)/whereabouts-reconciler: $(TOOLS)/whereabouts/go.mod $(TOOLS)/whereabouts/go.sum $(TOOLS)/whereabouts/main.go
	$(call build_tool,whereabouts,.)

$(BIN)/whereabouts-reconciler-map: $(BIN)/whereabouts-reconciler $(TOOLS)/whereabouts/reconciler.sh
	$(TOOLS)/whereabouts/reconciler.sh "$(CURDIR)/$@"

# The plugin is Calico's IPAM plugin when it is called by this name.
$(BIN)/calico-ipam: $(TOOLS)/calico/go.mod $(TOOLS)/calico/go.sum
	$(call build_tool,calico,github.com/projectcalico/calico/cni-plugin/cmd/calico)

$(BIN)/calicoctl: $(TOOLS)/calico/go.mod $(TOOLS)/calico/go.sum
	$(call build_tool,calico,github.com/projectcalico/calico/calicoctl/calicoctl)

$(BIN)/kube-controllers: $(TOOLS)/calico/go.mod $(TOOLS)/calico/go.sum
	$(call build_tool,calico,github.com/projectcalico/calico/kube-controllers/cmd/kube-controllers)

$(BIN)/host-local: $(TOOLS)/cniplugins/go.mod $(TOOLS)/cniplugins/go.sum
	$(call build_tool,cniplugins,github.com/containernetworking/plugins/plugins/ipam/host-local)

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

$(BIN)/actionlint: $(TOOLS)/actionlint/go.mod $(TOOLS)/actionlint/go.sum
	$(call build_tool,actionlint,github.com/rhysd/actionlint/cmd/actionlint)

$(BIN)/changie: $(TOOLS)/release/go.mod $(TOOLS)/release/go.sum
	$(call build_tool,release,github.com/miniscruff/changie)

$(BIN)/release: $(TOOLS)/release/go.mod $(TOOLS)/release/go.sum $(wildcard $(TOOLS)/release/*.go)
	$(call build_tool,release,.)

$(BIN)/crane: $(TOOLS)/image/go.mod $(TOOLS)/image/go.sum
	$(call build_tool,image,github.com/google/go-containerregistry/cmd/crane)

# Built first and then exec'd, so that Ctrl-C reaches the demo and nothing else. With -trimpath,
# as the other programs, so that the packages they share are compiled once.
.PHONY: demo
demo: $(DEMO_ASSETS) $(BIN)/ip-reaper ## Play an outage and its end on a real API server (under 30 s once the parts are built); KEEP=1 keeps it
	@cd integration && CGO_ENABLED=0 go build -trimpath -o bin/demo ./demo && exec bin/demo

.PHONY: outage
outage: $(DEMO_ASSETS) $(CALICO_ASSETS) $(BIN)/ip-reaper ## Record examples/outage again, on a real API server with real plugins
	@cd integration && CGO_ENABLED=0 go test -count=1 ./demo -run TestOutageIsRecorded -update
	go test ./reaper/cli -run TestExamplesOfAnOutage -update

.PHONY: check
check: ## Check format, vet all modules, and test the root module; builds no real parts
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "gofmt -w is needed for:"; echo "$$unformatted"; exit 1; }
	@failed=0; for module in $(MODULES); do \
		echo "go vet ./...   # in $$module"; \
		(cd $$module && go vet ./...) || failed=1; \
	done; exit $$failed
	go test -short ./...

# The race detector needs cgo and thereby a C compiler that can link.
define race_flags
race=-race cgo=1; \
if ! printf '#include <stdlib.h>\nint main(void) { return 0; }\n' | $$(go env CC) -x c -o /dev/null - 2>/dev/null; then \
	race= cgo=0; \
	echo '*** NO WORKING C COMPILER: the tests run WITHOUT the race detector ***' >&2; \
fi
endef

.PHONY: test
test: assets $(BIN)/ip-reaper ## Run the tests of the program, those on the real parts included, with samples of the exhaustive ones
	@[ "$$(id -u)" = 0 ] && command -v containerd >/dev/null && command -v runc >/dev/null || \
		echo '*** NOT ROOT, OR NO CONTAINERD AND RUNC: sandboxes that containerd loses ARE NOT TESTED ***' >&2
	@$(race_flags); \
	echo "go test $$race -short $(TESTFLAGS) ./..." && \
	CGO_ENABLED=$$cgo go test $$race -short $(TESTFLAGS) ./...
	@cd integration && packages=$$(go list ./... | grep -vE '/integration/ship(/|$$)') && \
	echo "go test -short $(TESTFLAGS)   # in integration" && \
	CGO_ENABLED=0 go test -short $(TESTFLAGS) $$packages

.PHONY: ship
ship: assets $(BIN)/ip-reaper ## Run the tests of what is shipped: release, image, manifests, chart, HTML page, pages
	@docker version >/dev/null 2>&1 || echo '*** NO DOCKER DAEMON ANSWERS: the image IS NOT TESTED ***' >&2
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
		echo '*** NO CHROMIUM: the HTML report IS NOT TESTED ***' >&2
	cd integration && CGO_ENABLED=0 go test -short $(TESTFLAGS) ./ship/...

# Where git does not know what has changed, as in a clone of main itself, it is run.
.PHONY: ship-changed
ship-changed: ## Run make ship if what it tests has changed since BASE (origin/main)
	@if base=$$(git merge-base '$(BASE)' HEAD 2>/dev/null) && [ "$$base" != "$$(git rev-parse HEAD)" ] && \
		git diff --quiet "$$base" -- $(SHIPPED); \
	then echo "make ship is not run: nothing that it tests has changed since $$base"; \
	else $(MAKE) --no-print-directory ship; fi

# The tests that are named TestEvery... take samples in make test.
.PHONY: exhaustive
exhaustive: assets $(BIN)/ip-reaper ## Run every row of the tests of which make test takes samples, and the backends with the race detector
	@$(race_flags); \
	(cd integration && echo "go test $$race -short $(TESTFLAGS) $(RACED)" && \
	CGO_ENABLED=$$cgo go test $$race -short $(TESTFLAGS) $(RACED:%=./%)) && \
	for module in . integration; do cd "$(CURDIR)/$$module" && \
	packages=$$(grep -rlE --include='*_test.go' --exclude-dir=integration '^func TestEvery' . | xargs -n 1 dirname | sort -u) && \
	echo "go test $$race -run '^TestEvery' $(EXHAUSTIVEFLAGS)" $$packages && \
	CGO_ENABLED=$$cgo go test $$race -run '^TestEvery' $(EXHAUSTIVEFLAGS) $$packages || exit; done

.PHONY: lint
lint: $(BIN)/golangci-lint $(BIN)/actionlint ## Check format, vet, linters, tidiness and workflows
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "gofmt -w is needed for:"; echo "$$unformatted"; exit 1; }
	@failed=0; for module in $(MODULES) $(TOOL_MODULES); do \
		echo "go mod tidy -diff   # in $$module"; \
		(cd $$module && go mod tidy -diff) || failed=1; \
	done; exit $$failed
	@failed=0; for module in $(MODULES); do \
		echo "go vet ./...   # in $$module"; \
		(cd $$module && go vet ./...) || failed=1; \
	done; exit $$failed
	@failed=0; for module in $(LINTED); do \
		echo "golangci-lint run   # in $$module"; \
		(cd $$module && "$(CURDIR)/$(BIN)/golangci-lint" run --config "$(CURDIR)/.golangci.yml" ./...) || failed=1; \
	done; exit $$failed
	$(BIN)/actionlint -shellcheck= -pyflakes= .github/workflows/*.yaml

# The parts of the tests are left out: which of their versions are run is a decision, and no user
# runs them. govulncheck exits with 3 if there is a vulnerability, and with 1 where the database
# cannot be reached: then the other modules are not tried.
.PHONY: vulncheck
vulncheck: $(BIN)/govulncheck ## Check the program, its tests and what makes releases for known vulnerabilities
	@failed=0; for module in $(LINTED); do \
		echo "govulncheck ./...   # in $$module"; \
		(cd $$module && "$(CURDIR)/$(BIN)/govulncheck" ./...) || { failed=$$?; [ $$failed = 3 ] || break; }; \
	done; exit $$failed

# CI runs this each week: a version takes longer than a change should wait. A newer one is
# pinned by $(TOOLS)/kubernetes/pin.sh v1.38.0 kubernetes-1.38, and runs from then on. A
# cluster of another version than the one that is asked for does not start.
.PHONY: versions
versions: assets $(BIN)/ip-reaper $(foreach minor,$(VERSIONS),$(addprefix $(BIN)/kubernetes-$(minor)/,kube-apiserver kubectl)) ## Run the tests of a run, conformance and kubectl's plugin on each Kubernetes of VERSIONS ("1.31 1.37"; all)
	@cd integration && export CGO_ENABLED=0 && for version in $(VERSIONS); do \
		export IP_REAPER_KUBERNETES=$$version && echo "=== Kubernetes $$version ===" && \
		go test -short $(TESTFLAGS) ./run ./ship/admission && \
		go test -short $(TESTFLAGS) -run Conform ./whereabouts ./calico || exit 1; \
		for kubectl in $(VERSIONS); do \
			echo "=== Kubernetes $$version, kubectl $$kubectl ===" && \
			IP_REAPER_KUBECTL=$$kubectl go test -short $(TESTFLAGS) -run '^TestKubectl' ./ship || exit 1; \
		done; \
	done

# An input that reaches new code is shortened for at most 10 runs of it: some targets take a second for one.
.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME, such as 20s (the default) or 100x
	@grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort | while IFS=: read -r file func; do \
		target=$${func#func }; \
		echo "$$target in $${file%/*}"; \
		(cd "$${file%/*}" && go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x .) || exit 1; \
	done

.PHONY: gobench
gobench: assets $(BIN)/ip-reaper ## Run the Go benchmarks that match BENCH (all)
	@for module in . integration; do \
		(cd $$module && go test -run '^$$' -bench '$(BENCH)' -benchmem ./...) || exit 1; \
	done

# Built first and then exec'd, as the demo.
scale = cd integration && CGO_ENABLED=0 go build -trimpath -o bin/scale ./bench/scale && exec bin/scale

.PHONY: bench
bench: $(BENCH_ASSETS) $(BIN)/ip-reaper ## Measure ip-reaper beside its peers; BENCHFLAGS='-pods 150000 -turns 1'
	@$(scale) -parts plan,run,whereabouts,guest,calico,calico-etcd,calico-peers $(BENCHFLAGS)

.PHONY: bench-short
bench-short: $(BENCH_ASSETS) $(BIN)/ip-reaper ## Measure the same with two small clusters (under 3 min once the parts are built)
	@$(scale) -pods 1000,4000 -parts plan,run,whereabouts,calico,calico-etcd -turns 1 -limit 20s $(BENCHFLAGS)

.PHONY: cover
cover: ## Measure what the tests of the root module cover: coverage.out, coverage.html
	go test -count=1 -coverpkg=./... -coverprofile=coverage.out ./...
	go tool cover -html=coverage.out -o coverage.html
	@go tool cover -func=coverage.out | tail -n 1

include integration/kind/kind.mk

.PHONY: clean
clean: ## Remove all that was built, the real parts of the tests included
	rm -rf bin dist $(BIN) integration/kind/build coverage.out coverage.html

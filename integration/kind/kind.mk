# The kind cluster: its programs, its node image, and the end-to-end tests on it.
# integration/kind/README.md tells how it is made.

KIND := integration/kind
KIND_BIN := $(KIND)/build/bin
KIND_CNI := $(KIND)/build/cni

KIND_KUBERNETES := $(addprefix $(KIND_BIN)/,kube-controller-manager kube-proxy kube-scheduler kubeadm kubelet)
KIND_CONTAINERD := $(addprefix $(KIND_BIN)/,containerd containerd-shim-runc-v2 ctr)
KIND_OURS := $(addprefix $(KIND_BIN)/,pause runc-bounded workload)
KIND_PLUGINS := $(addprefix $(KIND_CNI)/,bridge host-local loopback portmap ptp)

# What a cluster needs of any node image, and what is needed to build one.
KIND_CLUSTER := $(KIND_BIN)/kind $(KIND_OURS) $(KIND_PLUGINS) $(KIND_CNI)/multus \
	$(BIN)/calico-ipam $(BIN)/kubectl $(BIN)/whereabouts
KIND_NODE := $(KIND_KUBERNETES) $(KIND_CONTAINERD) $(KIND_BIN)/coredns $(KIND_BIN)/crictl \
	$(KIND_BIN)/pause $(KIND_PLUGINS) $(BIN)/etcd $(BIN)/kube-apiserver $(BIN)/kubectl

$(KIND_KUBERNETES): $(TOOLS)/kubernetes/go.mod $(TOOLS)/kubernetes/go.sum
	$(call build_tool,kubernetes,k8s.io/kubernetes/cmd/$(@F),$(KUBERNETES_LDFLAGS))

$(KIND_CONTAINERD): $(TOOLS)/containerd/go.mod $(TOOLS)/containerd/go.sum
	$(call build_tool,containerd,-tags "no_aufs no_btrfs no_devmapper no_zfs" github.com/containerd/containerd/v2/cmd/$(@F))

$(KIND_BIN)/coredns: $(TOOLS)/coredns/go.mod $(TOOLS)/coredns/go.sum $(TOOLS)/coredns/main.go
	$(call build_tool,coredns,.)

$(KIND_BIN)/crictl: $(TOOLS)/cri/go.mod $(TOOLS)/cri/go.sum
	$(call build_tool,cri,sigs.k8s.io/cri-tools/cmd/crictl)

$(KIND_BIN)/kind: $(TOOLS)/kind/go.mod $(TOOLS)/kind/go.sum
	$(call build_tool,kind,sigs.k8s.io/kind)

$(KIND_CNI)/multus: $(TOOLS)/multus/go.mod $(TOOLS)/multus/go.sum
	$(call build_tool,multus,gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/multus)

$(KIND_CNI)/host-local: FOLDER := ipam
$(KIND_CNI)/portmap: FOLDER := meta
$(KIND_PLUGINS): FOLDER ?= main
$(KIND_PLUGINS): $(TOOLS)/cniplugins/go.mod $(TOOLS)/cniplugins/go.sum
	$(call build_tool,cniplugins,github.com/containernetworking/plugins/plugins/$(FOLDER)/$(@F))

# A containerd of its own makes sandboxes in integration/hostlocal.
assets: $(KIND_CONTAINERD) $(KIND_BIN)/pause $(KIND_BIN)/runc-bounded $(KIND_CNI)/multus $(KIND_PLUGINS)

# Ours; go decides what is out of date. runc-bounded lies in the folder runtime.
.PHONY: $(KIND_OURS)
$(KIND_OURS):
	@cd integration && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$(CURDIR)/$@" ./kind/$(patsubst runc-bounded,runtime,$(@F))

.PHONY: kind-image
ifdef KIND_NODE_IMAGE
kind-image: ## Build the node image of the kind cluster (once, about 10 minutes), unless KIND_NODE_IMAGE names one
	@echo "kind-image: $(KIND_NODE_IMAGE) is used"
else
kind-image: $(KIND_NODE)
	@$(KIND)/image/node.sh
endif

.PHONY: kind-up
kind-up: kind-image $(KIND_CLUSTER) ## Bring up the kind cluster: integration/kind/build/kubeconfig
	@$(KIND)/up.sh

.PHONY: kind-down
kind-down: $(KIND_BIN)/kind ## Delete the kind cluster
	@$(KIND)/down.sh

.PHONY: e2e
e2e: $(KIND_CLUSTER) kind-image ## Run the end-to-end tests on a kind cluster; KEEP=1 leaves it up
	@$(MAKE) image IMAGE=ip-reaper:e2e
	@KEEP="$(KEEP)" $(KIND)/e2e.sh

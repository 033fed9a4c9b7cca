#!/bin/sh
# Pins k8s.io/kubernetes: ./pin.sh v1.36.3
#
# With a folder beside this one, it pins there the two programs that make versions
# runs, the API server and kubectl: ./pin.sh v1.31.14 kubernetes-1.31
#
# The published module requires its staging modules (k8s.io/api, ...) at
# v0.0.0 and replaces them by folders that only its repository has. The staging
# modules are published as v0.Y.Z for Kubernetes v1.Y.Z, so one replace line for
# each makes the module buildable from the proxy alone.
set -eu
version=${1:?usage: ./pin.sh v1.Y.Z [kubernetes-1.Y]}
folder=${2:-kubernetes}
programs="kube-apiserver kubectl"
if [ "$folder" = kubernetes ]; then
	programs="kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubeadm kubectl"
fi
mkdir -p "$(dirname "$0")/../$folder"
cd "$(dirname "$0")/../$folder"

rm -f go.mod go.sum
go mod init "github.com/ip-reaper/ip-reaper/integration/tools/$folder"
go mod edit -toolchain="$(sed -n 's/^toolchain //p' ../../../go.mod)"
gomod=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
for module in $(sed -n 's/^\t\(k8s.io\/[a-z-]*\) v0.0.0$/\1/p;s/^\t\(k8s.io\/[a-z-]*\) v0.0.0 .*$/\1/p' "$gomod" | sort -u); do
	go mod edit -replace "$module=$module@v0${version#v1}"
done
for program in $programs; do
	go get -tool "k8s.io/kubernetes/cmd/$program@$version"
done
go mod tidy

# The names and places that the scripts here share: to be sourced.

cluster=ip-reaper-e2e
workload=ip-reaper-workload:e2e

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tools=$here/../tools
assets=$here/../bin
build=$here/build
kubeconfig=$build/kubeconfig

# A docker of ours comes first where runtime.sh found that it is needed.
PATH=$build/shim:$build/bin:$assets:$PATH

# module_dir TOOLS MODULE: where the source of the module lies, at the version
# that the tools module of that name pins.
module_dir() {
	(cd "$tools/$1" && go mod download -json "$2") | jq -re .Dir
}

# nodes: the nodes that run, one a line.
nodes() {
	docker ps --filter "label=io.x-k8s.kind.cluster=$cluster" --format '{{.Names}}' | sort
}

# pods_of NODE: the range of the addresses that its pods have.
pods_of() {
	case $1 in
	"$cluster-control-plane") echo 10.244.0.0/24 ;;
	"$cluster-worker") echo 10.244.1.0/24 ;;
	"$cluster-worker2") echo 10.244.2.0/24 ;;
	*) die "$1 is no node of cluster $cluster" ;;
	esac
}

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

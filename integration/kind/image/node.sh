#!/bin/bash
# Builds the node image, once: what `kind build node-image` does, which itself
# pulls from registries. Prints its name.
set -euo pipefail
. "$(dirname "$0")/../names.sh"

docker version >/dev/null || die "no Docker daemon answers: start one, 20.10 or later"
image=$("$here/image/tag.sh")
if docker image inspect "$image" >/dev/null 2>&1; then
	echo "$image"
	exit 0
fi
"$here/packages.sh" debootstrap=debootstrap jq=jq
mkdir -p "$build"

base=${image/node:/node-base:}
"$here/image/base.sh" "$base"
mapfile -t components < <("$here/image/components.sh")

builder=ip-reaper-node-builder
docker rm --force "$builder" >/dev/null 2>&1 || true
docker run --detach --name "$builder" --security-opt seccomp=unconfined --entrypoint sleep "$base" infinity >/dev/null
trap 'docker rm --force --volumes "$builder" >/dev/null; docker rmi "$base" >/dev/null' EXIT

for program in "$build"/bin/{kubeadm,kubelet} "$assets/kubectl"; do
	docker cp "$program" "$builder:/usr/bin/" >/dev/null
done
docker exec --interactive "$builder" sh -c 'mkdir -p /kind/manifests && tee /kind/manifests/default-storage.yaml' >/dev/null <<END
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: kubernetes.io/no-provisioner
END
docker exec "$builder" sh -c 'printf %s "$1" >/kind/version' - "$(kubeadm version --output short)"

docker exec --detach "$builder" containerd
docker exec "$builder" sh -c 'for i in $(seq 100); do ctr version >/dev/null 2>&1 && exit; sleep 0.1; done; exit 1' ||
	die "containerd does not start in $base"
docker save "${components[@]}" |
	docker exec --interactive "$builder" ctr --namespace k8s.io images import --no-unpack --digests \
		--label io.cri-containerd.pinned=pinned - >/dev/null
docker exec "$builder" pkill -x containerd
docker commit --change 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]' "$builder" "$image" >/dev/null
docker rmi "${components[@]}" >/dev/null
# Older ones go, but for those that a cluster still runs on.
docker images --filter 'reference=ip-reaper-node:*' --format '{{.Repository}}:{{.Tag}}' | grep -vxF "$image" |
	xargs --no-run-if-empty docker rmi >/dev/null 2>&1 || true
echo "$image"

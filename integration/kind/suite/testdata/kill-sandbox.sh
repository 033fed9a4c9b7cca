# Takes the sandbox of a pod away behind the kubelet's back, so that no CNI DEL is
# called for it: the kubelet makes a new one. Prints the ID of the old one.
namespace=$1 pod=$2
sandbox=$(crictl pods --namespace "$namespace" --name "$pod" --state ready --quiet | head -n 1)
[[ -n $sandbox ]] || { echo "$namespace/$pod has no sandbox" >&2; exit 1; }
netns=$(crictl inspectp "$sandbox" | jq -r '.info.runtimeSpec.linux.namespaces[] | select(.type == "network").path')
systemctl stop kubelet
for container in $(crictl ps --all --pod "$sandbox" --quiet) "$sandbox"; do
	ctr -n k8s.io tasks kill --signal SIGKILL "$container" >/dev/null 2>&1 || true
	for _ in 1 2 3 4 5; do
		ctr -n k8s.io tasks delete --force "$container" >/dev/null 2>&1 && break
		ctr -n k8s.io tasks list | grep -q "$container" || break
		sleep 0.2
	done
	# The last request of the kubelet may have deleted it.
	ctr -n k8s.io containers delete "$container" >/dev/null || [[ $(ctr -n k8s.io containers list --quiet) != *"$container"* ]]
done
ctr -n k8s.io sandboxes remove --force "$sandbox" >/dev/null 2>&1 || true
umount "$netns" && rm "$netns"
systemctl restart containerd
systemctl start kubelet
echo "$sandbox"

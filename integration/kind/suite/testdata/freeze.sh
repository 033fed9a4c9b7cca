# Stops the shim of a pod's sandboxes, or continues it: freeze.sh STOP|CONT NAMESPACE POD.
# While it is stopped, nothing ends the pod's processes, as where one is in D state. The
# sandbox may be gone when it is to continue.
for sandbox in $(crictl pods --no-trunc --namespace "$2" --name "$3" --quiet); do
	pkill "-$1" -f "containerd-shim-runc-v2 .*$sandbox" || [[ $1 == CONT ]]
done

# Undoes host-local.sh, and removes what the test left: host-local-end.sh PATH...
if [[ -e /etc/cni/put-aside/00-multus.conf ]]; then
	mv /etc/cni/put-aside/00-multus.conf /etc/cni/net.d
fi
rm -rf /etc/cni/put-aside /etc/cni/net.d/10-host-local.conflist "$@"

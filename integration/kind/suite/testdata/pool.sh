# Has the node give its pods addresses of another pool: pool.sh POOL.
jq --arg pool "$1" '.delegates[0].ipam.ipv4_pools = [$pool]' /etc/cni/net.d/00-multus.conf >/etc/cni/net.d/new
mv /etc/cni/net.d/new /etc/cni/net.d/00-multus.conf

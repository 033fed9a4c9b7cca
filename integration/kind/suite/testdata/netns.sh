# Prints the addresses that the sandboxes of the node have. A sandbox may go meanwhile.
for netns in /run/netns/*; do
	nsenter --net="$netns" ip -json -4 address show scope global 2>/dev/null | jq -r '.[].addr_info[].local' || true
done

#!/bin/bash
# Lays the routes between the nodes that run, and what hides the pods' addresses
# from the world. A node that is started again has lost them: run this after
# docker start. It does no harm at any other time.
set -euo pipefail
. "$(dirname "$0")/names.sh"

declare -A address
for node in $(nodes); do
	address[$node]=$(docker inspect --format '{{.NetworkSettings.Networks.kind.IPAddress}}' "$node")
done

for node in "${!address[@]}"; do
	for other in "${!address[@]}"; do
		[ "$node" = "$other" ] ||
			docker exec "$node" ip route replace "$(pods_of "$other")" via "${address[$other]}"
	done
	docker exec --interactive "$node" nft -f - <<-END
		table ip pods
		delete table ip pods
		table ip pods {
			chain postrouting {
				type nat hook postrouting priority srcnat
				ip saddr 10.244.0.0/16 ip daddr != 10.244.0.0/16 masquerade
			}
		}
	END
done

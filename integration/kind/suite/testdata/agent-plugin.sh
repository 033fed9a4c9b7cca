# Gives the node a CNI plugin that asks an agent of the node, as those of meshes and of
# observers do. Without the agent, which is /run/agent.sock here, each ADD and DEL fails as
# theirs do. A reboot takes the agent away. agent-plugin.sh NAME
cat >"/opt/cni/bin/$1" <<'PLUGIN'
#!/bin/bash
config=$(cat)
if [[ ! -e /run/agent.sock ]]; then
	echo '{"cniVersion": "0.3.1", "code": 100, "msg": "dial unix /run/agent.sock: connect: no such file or directory"}'
	exit 1
fi
[[ $CNI_COMMAND != ADD ]] || jq .prevResult <<<"$config"
PLUGIN
chmod 755 "/opt/cni/bin/$1"

# Gives the node a CNI plugin that asks an agent of the node, as those of meshes and of
# observers do: agent-plugin.sh NAME. The agent is /run/agent.sock here. Without it, ADD and
# DEL fail as theirs do. An agent that has a
# file /run/agent.refuses/COMMAND.POD refuses that. A reboot takes all of them away.
cat >"/opt/cni/bin/$1" <<'PLUGIN'
#!/bin/bash
config=$(cat)
if [[ ! -e /run/agent.sock ]]; then
	echo '{"cniVersion": "0.3.1", "code": 100, "msg": "dial unix /run/agent.sock: connect: no such file or directory"}'
	exit 1
fi
pod=${CNI_ARGS#*K8S_POD_NAME=}
if [[ -e /run/agent.refuses/$CNI_COMMAND.${pod%%;*} ]]; then
	echo '{"cniVersion": "0.3.1", "code": 100, "msg": "the agent refuses"}'
	exit 1
fi
[[ $CNI_COMMAND != ADD ]] || jq .prevResult <<<"$config"
PLUGIN
chmod 755 "/opt/cni/bin/$1"

# Gives the node a CNI plugin that asks an agent of the node, as those of meshes and of
# observers do: agent-plugin.sh NAME. The agent is /run/agent.sock here. Without it, ADD and
# DEL fail as theirs do. An agent that has a file /run/agent.refuses/COMMAND.POD refuses
# that, and notes it in /run/agent.refused; one that is not empty holds it for as long as it
# is there. A reboot takes all of them away.
cat >"/opt/cni/bin/$1" <<'PLUGIN'
#!/bin/bash
config=$(cat)
if [[ ! -e /run/agent.sock ]]; then
	echo '{"cniVersion": "0.3.1", "code": 100, "msg": "dial unix /run/agent.sock: connect: no such file or directory"}'
	exit 1
fi
pod=${CNI_ARGS#*K8S_POD_NAME=}
what=$CNI_COMMAND.${pod%%;*}
if [[ -e /run/agent.refuses/$what ]]; then
	echo "$what $CNI_CONTAINERID" >>/run/agent.refused
	while [[ -s /run/agent.refuses/$what ]]; do sleep 0.1; done
	echo '{"cniVersion": "0.3.1", "code": 100, "msg": "the agent refuses"}'
	exit 1
fi
[[ $CNI_COMMAND != ADD ]] || jq .prevResult <<<"$config"
PLUGIN
chmod 755 "/opt/cni/bin/$1"

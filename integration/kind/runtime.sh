#!/bin/bash
# Makes privileged containers start where the machine lacks a capability: registers
# runc-bounded with the Docker daemon, and puts a docker first in the PATH of the
# scripts here that asks for it. Does nothing where a container of the image starts:
# runtime.sh IMAGE
set -euo pipefail
. "$(dirname "$0")/names.sh"

image=$1
runtime=runc-bounded
path=$build/bin/$runtime
config=/etc/docker/daemon.json

docker=$(type -aP docker | grep -vxF "$build/shim/docker" | head -n 1) || die "install Docker, 20.10 or later"
rm -rf "$build/shim"
if error=$("$docker" run --rm --privileged --entrypoint true "$image" 2>&1); then
	exit 0
fi
[[ $error == *caps* ]] || die "no privileged container of $image starts: $error"

registered() {
	"$docker" info --format '{{json .Runtimes}}' | jq -e --arg path "$path" ".[\"$runtime\"].path == \$path" >/dev/null
}

if ! registered; then
	daemon=$(cat /var/run/docker.pid) ||
		die "the Docker daemon lacks a capability and is not here: register $path with it as runtime $runtime"
	mkdir -p "${config%/*}"
	[ -s $config ] || echo '{}' >$config
	changed=$(jq --arg path "$path" ".runtimes[\"$runtime\"] = {path: \$path}" $config) || die "$config is not understood"
	printf '%s\n' "$changed" >$config
	kill -HUP "$daemon"
	for _ in $(seq 50); do
		registered && break
		sleep 0.1
	done
	registered || die "the Docker daemon did not take the runtime $runtime from $config: restart it"
fi

mkdir -p "$build/shim"
cat >"$build/shim/docker" <<END
#!/bin/sh
case \${1-} in
create | run)
	command=\$1
	shift
	exec "$docker" "\$command" --runtime $runtime "\$@"
	;;
esac
exec "$docker" "\$@"
END
chmod +x "$build/shim/docker"

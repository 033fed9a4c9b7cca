# Kills containerd while ADDs wait for the lock that hold-adds.sh holds, and lets the lock
# go. The ADDs, which lose their runtime and live on, stay stopped until SIGCONT.
# kill-in-add.sh HOLDER COUNT prints the process and the sandbox of each.
holder=$1 count=$2
adding() {
	for pid in $(pgrep -x host-local); do
		if grep -qz '^CNI_COMMAND=ADD$' "/proc/$pid/environ" 2>/dev/null; then echo "$pid"; fi
	done
}
for ((i = 0; i < 600; i++)); do
	mapfile -t adds < <(adding)
	((${#adds[@]} < count)) || break
	sleep 0.1
done
((${#adds[@]} >= count)) || { echo "${#adds[@]} ADDs wait, want $count" >&2; exit 1; }
kill -STOP "${adds[@]}"
systemctl kill --signal KILL --kill-who main containerd
kill "$holder"
for pid in "${adds[@]}"; do
	echo "$pid $(tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^CNI_CONTAINERID=//p')"
done

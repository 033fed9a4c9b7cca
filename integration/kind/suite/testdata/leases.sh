# Prints the leases in the folder of a network, one a line: the address, the container that
# has it, the permissions, and the time of modification in nanoseconds.
shopt -s nullglob
cd "$1" 2>/dev/null || exit 0
for file in [0-9]*; do
	# The plugin may remove it between two of these.
	{ { read -r id || [[ $id ]]; } && stat=$(stat --format '%a %.9Y' "$file"); } <"$file" 2>/dev/null || continue
	echo "$file ${id%$'\r'} ${stat/./}"
done

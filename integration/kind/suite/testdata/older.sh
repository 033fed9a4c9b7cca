# Makes leases older by some minutes, and what libcni knows of their sandboxes:
# older.sh MINUTES FOLDER ADDRESS...
minutes=$1 folder=$2
shift 2
shopt -s nullglob
for address; do
	{ read -r id || [[ $id ]]; } <"$folder/$address"
	for file in "$folder/$address" /var/lib/cni/results/*-"${id%$'\r'}"-*; do
		touch --no-create --date "$(stat --format %y "$file") - $minutes minutes" "$file"
	done
done

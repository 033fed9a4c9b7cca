# Makes files older by some minutes: older.sh MINUTES FOLDER FILE...
minutes=$1
cd "$2"
shift 2
for file; do
	touch --no-create --date "$(stat --format %y "$file") - $minutes minutes" "$file"
done

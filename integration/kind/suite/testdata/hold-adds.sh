# Holds the lock of a network of host-local, so that the ADDs of the node wait in the
# plugin: hold-adds.sh FOLDER. Prints the process that kill-in-add.sh ends.
exec 9<>"$1/lock"
flock 9
sleep 600 >/dev/null 2>&1 &
echo $!

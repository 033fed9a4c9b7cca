#!/bin/bash
# Prints the path of a tarball of Debian with the packages that a node needs, and
# makes it where it is not there: bookworm, as the systemd of later ones refuses
# cgroup v1.
set -euo pipefail
. "$(dirname "$0")/../names.sh"

suite=bookworm
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
packages=systemd,conntrack,iptables,nftables,iproute2,ethtool,util-linux,mount,kmod
packages+=,libseccomp2,pigz,e2fsprogs,bash,ca-certificates,curl,jq,procps,runc

hash=$(echo "$suite $packages" | sha256sum)
tarball=$build/rootfs-${hash:0:12}.tar
if [ ! -s "$tarball" ]; then
	[ "$(id -u)" = 0 ] || die "debootstrap needs root"
	root=$(mktemp -d)
	trap 'rm -rf --one-file-system "$root"' EXIT
	debootstrap --variant=minbase --include="$packages" "$suite" "$root" "$mirror" >&2 ||
		die "debootstrap from $mirror failed: set DEBIAN_MIRROR to one that can be reached"
	rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
	tar -C "$root" -c --numeric-owner . >"$tarball.partial"
	mv "$tarball.partial" "$tarball"
fi
echo "$tarball"

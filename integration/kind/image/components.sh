#!/bin/bash
# Makes the images of Kubernetes' components, of one layer each, under the names
# that kubeadm and kind's containerd ask for, and prints the names.
set -euo pipefail
. "$(dirname "$0")/../names.sh"

layer=$(mktemp -d)
rootfs=$(mktemp -d)
trap 'rm -rf --one-file-system "$layer" "$rootfs"' EXIT

# import IMAGE ENTRYPOINT: the layer as an image.
import() {
	tar -C "$layer" -c --owner=0 --group=0 . |
		docker import --change "ENTRYPOINT $2" --change 'ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - "$1" >/dev/null
	echo "$1"
	find "$layer" -mindepth 1 -delete
}

# add_nft: what kube-proxy runs, with every library that it loads and those that
# its plugins load: nft fails without a word where one of them is missing.
add_nft() {
	tar -C "$rootfs" -x -f "$("$here/image/rootfs.sh")"
	local xtables=/usr/lib/x86_64-linux-gnu/xtables
	local programs=(/usr/sbin/nft /usr/sbin/xtables-nft-multi /usr/sbin/conntrack)
	mapfile -t libraries < <(chroot "$rootfs" sh -c "ldd ${programs[*]} $xtables/*.so" |
		grep -o '/[^ :]*\.so[^ :]*' | sort -u)
	mkdir -p "$layer"/{tmp,run,usr/{bin,sbin,lib,lib64}}
	ln -s usr/bin usr/sbin usr/lib usr/lib64 "$layer"
	for file in "${programs[@]}" "${libraries[@]}"; do
		mkdir -p "$layer${file%/*}"
		cp -L "$rootfs$file" "$layer$file"
	done
	for name in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
		ln -s xtables-nft-multi "$layer/usr/sbin/$name"
	done
}

version=$(kubeadm version --output short)
for image in $(kubeadm config images list --kubernetes-version "$version"); do
	name=${image##*/}
	name=${name%:*}
	program=$build/bin/$name
	[ -e "$program" ] || program=$assets/$name
	case $name in
	pause) continue ;; # as kind's containerd names it, below
	kube-proxy) add_nft ;;
	esac
	install -D -t "$layer/usr/local/bin" "$program"
	import "$image" "[\"/usr/local/bin/$name\"]"
done

config=$(module_dir kind sigs.k8s.io/kind)/images/base/files/etc/containerd/config.toml
install -D -t "$layer/usr/local/bin" "$build/bin/pause"
import "$(sed -n 's/^ *sandbox_image = "\(.*\)"$/\1/p' "$config")" '["/usr/local/bin/pause"]'

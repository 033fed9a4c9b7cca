#!/bin/bash
# Builds the base of the node image, base.sh IMAGE: what kind's images/base
# makes, of the same files, from Debian's packages and our programs.
set -euo pipefail
. "$(dirname "$0")/../names.sh"

image=$1
tarball=$("$here/image/rootfs.sh")
files=$(module_dir kind sigs.k8s.io/kind)/images/base/files
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
tar -C "$root" -x --numeric-owner -f "$tarball"

# The module cache is read-only and has no modes: they are as in kind's Dockerfile.
cp -r --no-preserve=mode "$files"/{etc,kind,usr} "$root"
chmod 755 "$root"/usr/local/bin/* "$root"/kind/bin/*
install -D -t "$root/usr/local/bin" "$build"/bin/{containerd,containerd-shim-runc-v2,crictl,ctr}
install -D -t "$root/opt/cni/bin" "$build"/cni/{host-local,loopback,portmap,ptp}
mkdir -p "$root/etc/kubernetes/manifests"

# Of systemd's units only what a container can have.
rm -f "$root"/lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service \
	"$root"/lib/systemd/system/{multi-user,local-fs}.target.wants/* \
	"$root"/etc/systemd/system/*.wants/* \
	"$root"/lib/systemd/system/sockets.target.wants/*{udev,initctl}* \
	"$root"/lib/systemd/system/basic.target.wants/*
echo ReadKMsg=no >>"$root/etc/systemd/journald.conf"
ln -sf /usr/lib/systemd/systemd "$root/sbin/init"
chroot "$root" systemctl --quiet enable kubelet.service containerd.service undo-mount-hacks.service
chroot "$root" systemctl --quiet mask systemd-binfmt.service

ctr oci spec | jq '.hooks.createContainer += [{path: "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' \
	>"$root/etc/containerd/cri-base.json"
# The machine may lack CAP_SYS_RESOURCE, without which no score goes down.
sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' "$root/etc/containerd/config.toml"

# docker import of 20.10 takes no STOPSIGNAL; the classic builder needs no plugin.
tar -C "$root" -c --numeric-owner . | docker import - "$image-imported" >/dev/null
DOCKER_BUILDKIT=0 docker build --quiet --tag "$image" - <<END >/dev/null
FROM $image-imported
ENV container=docker
STOPSIGNAL SIGRTMIN+3
ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]
END
docker rmi "$image-imported" >/dev/null

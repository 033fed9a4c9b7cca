#!/bin/sh
# Writes the release VERSION of the commit that is checked out to dist/:
# ./release.sh CHANGIE CYCLONEDX VERSION OS/ARCH...
#
# What is not committed is not in it. The same commit and the same Go make the same
# bytes, wherever the checkout lies: the sources are exported, paths are trimmed, and
# every time is that of the commit.
set -eu
changie=$1 cyclonedx=$2 version=$3
shift 3

tar --version 2>/dev/null | grep -q 'GNU tar' || { echo "GNU tar is needed: other tars cannot sort" >&2; exit 1; }
commit=$(git rev-parse HEAD) || { echo "a release is that of a commit: check out one with git" >&2; exit 1; }
[ -z "$(git status --porcelain)" ] || echo "*** WHAT IS NOT COMMITTED IS NOT IN THE RELEASE ***" >&2
export LC_ALL=C TZ=UTC
seconds=$(git log -1 --format=%ct)
date=$(git log -1 --format=%cd --date=format-local:%F)

# pack writes the files of a folder to an archive: pack ARCHIVE FOLDER FILE...
pack() {
	archive=$1 folder=$2
	shift 2
	tar --create --format=ustar --sort=name --mtime="@$seconds" \
		--owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --directory="$folder" "$@" |
		gzip -9 --no-name >"$archive"
}

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
src=$stage/src
mkdir "$src"
git archive HEAD | tar --extract --directory="$src"
(cd "$src" && ./integration/tools/release/changelog.sh "$changie" "$version" "$date")
# The manifests name the image of the release, in place of the one in the checkout.
sed -i "s|\(image: ghcr.io/ip-reaper/ip-reaper\):.*|\1:$version|" "$src/deploy/kustomize/template/cronjob.yaml"
sed -i "s|^version:.*|version: ${version#v}|; s|^appVersion:.*|appVersion: $version|" "$src/deploy/helm/ip-reaper/Chart.yaml"

SOURCE_DATE_EPOCH=$seconds make --no-print-directory --silent -C "$src" man VERSION="$version" MAN_DIR="$stage/man" >/dev/null
rm -rf dist
mkdir dist
for platform; do
	name=ip-reaper_${version}_${platform%/*}_${platform#*/}
	echo "$name"
	GOOS=${platform%/*} GOARCH=${platform#*/} \
		make --no-print-directory --silent -C "$src" build VERSION="$version" COMMIT="$commit"
	cp "$src/bin/ip-reaper" "$src/LICENSE" "$src/README.md" "$src/CHANGELOG.md" "$stage"
	chmod 0755 "$stage/ip-reaper"
	pack "dist/$name.tar.gz" "$stage" ip-reaper LICENSE README.md CHANGELOG.md man
	"$cyclonedx" bin -json -noserial -notimestamp -std -version "$version" \
		-output "dist/$name.cdx.json" "$stage/ip-reaper"
done
pack "dist/ip-reaper_${version}_deploy.tar.gz" "$src" --exclude='*.go' deploy
pack "dist/ip-reaper-${version#v}.tgz" "$src/deploy/helm" ip-reaper
cd dist
sha256sum ip-reaper* >checksums.txt
cat checksums.txt

#!/bin/sh
# Packs an archive for each platform, the manifests, and the chart.
set -eu
cp LICENSE README.md CHANGELOG.md "$stage/THIRD_PARTY_NOTICES" "$stage/common"
for program in "$stage"/bin/*/ip-reaper; do
	folder=$(dirname "$program")
	cp -R "$stage/common/." "$folder"
	"$tools/release" pack "$dist/ip-reaper_${version}_$(basename "$folder").tar.gz" "$folder"
done
mkdir "$stage/manifests"
cp -R deploy "$stage/manifests"
find "$stage/manifests" -name '*.go' -delete
"$tools/release" pack "$dist/ip-reaper_${version}_deploy.tar.gz" "$stage/manifests"
mkdir "$stage/chart"
cp -R deploy/helm/ip-reaper "$stage/chart"
"$tools/release" pack "$dist/ip-reaper-${version#v}.tgz" "$stage/chart"

#!/bin/sh
# Puts the version of the release into its changelog and chart. image/release.sh puts it
# into the manifests.
set -eu
./integration/tools/release/changelog.sh "$tools/changie" "$version" "$date"
sed -i "s|^version:.*|version: ${version#v}|; s|^appVersion:.*|appVersion: $version|" deploy/helm/ip-reaper/Chart.yaml

#!/bin/sh
# Puts the version of the release into its changelog, manifests and chart.
set -eu
./integration/tools/release/changelog.sh "$tools/changie" "$version" "$date"
sed -i "s|\(image: ghcr.io/ip-reaper/ip-reaper\):.*|\1:$version|" deploy/kustomize/template/cronjob.yaml
sed -i "s|^version:.*|version: ${version#v}|; s|^appVersion:.*|appVersion: $version|" deploy/helm/ip-reaper/Chart.yaml

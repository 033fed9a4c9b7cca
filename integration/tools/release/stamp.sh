#!/bin/sh
# Puts a version into what names the one that it belongs to, in the working directory: chart,
# manifests, examples and pages: ./stamp.sh VERSION
set -eu
version=$1
sed --version 2>/dev/null | grep -q GNU || { echo "GNU sed is needed: others change no file in place" >&2; exit 1; }
sed -i "s|^version:.*|version: ${version#v}|; s|^appVersion:.*|appVersion: $version|" deploy/helm/ip-reaper/Chart.yaml
find README.md docs/*.md deploy \( -name '*.md' -o -name '*.yaml' \) -exec sed -i -E \
	"s#((image: ghcr.io/ip-reaper|registry.example)/ip-reaper:|targetRevision: |tag: |[?]ref=)v[0-9]+[.][0-9]+[.][0-9]+#\1$version#" {} +

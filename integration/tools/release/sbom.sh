#!/bin/sh
# Says what each program is made of.
set -eu
for program in "$stage"/bin/*/ip-reaper; do
	"$tools/cyclonedx-gomod" bin -json -noserial -notimestamp -std -version "$version" \
		-output "$dist/ip-reaper_${version}_$(basename "$(dirname "$program")").cdx.json" "$program"
done

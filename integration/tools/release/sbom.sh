#!/bin/sh
# Says what each program is made of, in the form of CycloneDX.
set -eu
for program in "$stage"/bin/*/ip-reaper; do
	name=$dist/ip-reaper_${version}_$(basename "$(dirname "$program")")
	"$tools/cyclonedx-gomod" bin -json -noserial -notimestamp -std -version "$version" -output "$name.cdx.json" "$program"
done

#!/bin/sh
# Says what each program is made of, in the forms of CycloneDX and SPDX.
set -eu
for program in "$stage"/bin/*/ip-reaper; do
	name=$dist/ip-reaper_${version}_$(basename "$(dirname "$program")")
	"$tools/cyclonedx-gomod" bin -json -noserial -notimestamp -std -version "$version" -output "$name.cdx.json" "$program"
	"$tools/spdx" "$name.spdx.json" "$stage/licences.json" "$version" "$program"
done

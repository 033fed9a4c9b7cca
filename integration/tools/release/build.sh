#!/bin/sh
# Builds the program for each platform: $stage/bin/OS_ARCH/ip-reaper.
set -eu
for platform in $platforms; do
	os=${platform%/*} arch=${platform#*/}
	echo "ip-reaper $version $platform"
	GOOS=$os GOARCH=$arch make --no-print-directory --silent build VERSION="$version" COMMIT="$commit"
	mkdir -p "$stage/bin/${os}_$arch"
	mv bin/ip-reaper "$stage/bin/${os}_$arch/ip-reaper"
done

#!/bin/sh
# Writes the image of the release, names it by its digest in manifests and chart, and says
# so in the notes of the release.
set -eu
name=ghcr.io/ip-reaper/ip-reaper
archive=ip-reaper_${version}_image.tar
digest=$(cd integration/tools/image && go run . release -name "$name:$version" -version "$version" -commit "$commit" \
	-created "$SOURCE_DATE_EPOCH" -license "$src/LICENSE" -notices "$stage/THIRD_PARTY_NOTICES" \
	-layout "$stage/image" "$stage"/bin/linux_*/ip-reaper)
"$tools/release" pack "$dist/$archive" "$stage/image"
echo "$name:$version@$digest"

find deploy -name '*.yaml' -exec sed -i "s|\(image: $name\):.*|\1:$version@$digest|" {} +
sed -i "s|\(ip-reaper/image-digest\):.*|\1: $digest|" deploy/helm/ip-reaper/Chart.yaml

cat "docs/changes/$version.md" - >"$dist/ip-reaper_${version}_notes.md" <<END

### Image

    $name:$version@$digest

The manifests and the chart of this release name the image by this digest, and
\`crane digest $name:$version\` prints the one that the registry has.
\`$archive\` has the same image as an OCI layout. The sources make it again:
\`make release VERSION=$version\` at commit $commit.
[How to verify a release](https://github.com/ip-reaper/ip-reaper/blob/$version/docs/install.md#verify-what-you-downloaded)
END

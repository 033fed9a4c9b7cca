#!/bin/sh
# Writes the release VERSION of the commit that is checked out to dist/:
# ./release.sh VERSION OS/ARCH...
#
# What is not committed is not in it. The same commit makes the same bytes, wherever the
# checkout lies and whatever the environment says: the sources are exported, paths are
# trimmed, every time is that of the commit, and Go is the one that go.mod names.
#
# Each step is a script of the commit, run in the exported sources. It finds in its environment:
#
#   version commit            v1.2.3, and the hash of the commit
#   SOURCE_DATE_EPOCH         the second of the commit
#   platforms                 linux/amd64 linux/arm64 ...
#   src                       the sources of the release: a step may change what later ones pack
#   tools                     the programs that steps run (release, cyclonedx-gomod), built
#   stage                     what steps hand to each other:
#     bin/OS_ARCH/ip-reaper     the programs
#     common/                   what every archive has beside the program
#   dist                      what is handed out; it becomes dist/ if no step fails
set -eu

# Where modules come from and are kept, proxies, and who builds may be said by the caller.
# All else is cleared, what go env -w has written too.
keep=' PATH HOME TMPDIR SSL_CERT_FILE SSL_CERT_DIR
	HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy
	GOPROXY GOSUMDB GOPRIVATE GONOPROXY GONOSUMDB GOPATH GOCACHE GOMODCACHE
	BUILDER_ID INVOCATION_ID '
for name in $(awk 'BEGIN { for (name in ENVIRON) if (name ~ /^[A-Za-z_][A-Za-z0-9_]*$/) print name }'); do
	case $keep in
	*[[:space:]]"$name"[[:space:]]*) ;;
	*) unset "$name" ;;
	esac
done
for name in GOPROXY GOSUMDB GOPRIVATE GONOPROXY GONOSUMDB GOPATH GOCACHE GOMODCACHE; do
	value=$(GOFLAGS=-mod=mod GOTOOLCHAIN=local go env "$name")
	export "$name=$value"
done
export LC_ALL=C TZ=UTC CGO_ENABLED=0 GOENV=off GOFLAGS=-mod=readonly GOWORK=off
umask 022

export version=$1
shift
"$(dirname "$0")/version.sh" "$version"
export platforms="$*"
commit=$(git rev-parse HEAD) || { echo "a release is that of a commit: check out one with git" >&2; exit 1; }
[ -z "$(git status --porcelain)" ] || echo "*** WHAT IS NOT COMMITTED IS NOT IN THE RELEASE ***" >&2
SOURCE_DATE_EPOCH=$(git -c log.showSignature=false log -1 --format=%ct)

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
src=$stage/src tools=$stage/tools dist=$stage/dist
export commit SOURCE_DATE_EPOCH stage src tools dist
mkdir "$src" "$tools" "$dist" "$stage/common"
git -c core.autocrlf=false -c core.eol=lf -c core.attributesFile=/dev/null archive HEAD | tar --extract --directory="$src"

step() { (cd "$src" && "./integration/tools/$1") || { echo "release: $1 failed" >&2; exit 1; }; }

step release/named.sh

GOTOOLCHAIN=$(sed -n 's/^toolchain //p' "$src/go.mod")
export GOTOOLCHAIN
go=$(go env GOVERSION) || go=none
[ "$go" = "$GOTOOLCHAIN" ] || { echo "a release is built by $GOTOOLCHAIN, which go.mod names, and not by $go" >&2; exit 1; }
(cd "$src/integration/tools/release" && go build -trimpath -ldflags='-s -w' -o "$tools/" \
	github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod .)

step release/man.sh
step packages/completions.sh
step release/build.sh
step release/notices.sh
step image/release.sh
step release/archives.sh
step release/sbom.sh
step packages/release.sh
step release/checksums.sh
step release/provenance.sh

rm -rf dist
mv "$dist" dist
cat dist/checksums.txt

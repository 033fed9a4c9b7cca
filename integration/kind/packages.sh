#!/bin/bash
# Installs what the scripts here need of Debian, where it is missing:
# packages.sh PROGRAM=PACKAGE...
set -euo pipefail

missing=()
for pair in "$@"; do
	command -v "${pair%%=*}" >/dev/null || missing+=("${pair##*=}")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "packages.sh: install ${missing[*]}, or run this as root on Debian or Ubuntu" >&2
	exit 1
fi
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; }; then
	echo "packages.sh: apt-get could not install ${missing[*]}: install them by hand" >&2
	exit 1
fi

#!/bin/sh
# Writes the scripts by which shells complete the program to what every archive has. The
# program itself prints them, so it is built for this machine.
set -eu
make --no-print-directory --silent build VERSION="$version" COMMIT="$commit"
mkdir "$stage/common/completions"
for shell in bash zsh fish powershell; do
	case $shell in
	zsh) name=_ip-reaper ;;
	powershell) name=ip-reaper.ps1 ;;
	*) name=ip-reaper.$shell ;;
	esac
	bin/ip-reaper completion "$shell" >"$stage/common/completions/$name"
done
rm bin/ip-reaper

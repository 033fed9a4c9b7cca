#!/bin/sh
# Says who made what is handed out, and from what.
set -eu
"$tools/release" provenance "$dist"

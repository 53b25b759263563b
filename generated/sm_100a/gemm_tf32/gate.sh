#!/bin/sh
# Runs a compiler and fails also on what it only remarks: serialised wgmma, ignored setmaxnreg, spills.
output=$("$@" 2>&1)
status=$?
[ -z "$output" ] || printf '%s\n' "$output"
[ $status -eq 0 ] || exit $status
if printf '%s\n' "$output" | grep -qE '\(C[0-9]{4}\)|warning|[1-9][0-9]* bytes spill'; then
  echo "gate.sh: the lines above break this project's rules; the product must not be used" >&2
  exit 1
fi

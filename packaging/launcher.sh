#!/bin/sh
# The command `sconce` of the wheel: starts the program that lies beside the Python package, without starting Python.
here=$(dirname "$(readlink -f "$0")")
for package in "$here"/../lib/python3*/*-packages "$here"/../lib64/python3*/*-packages; do
  if [ -d "$package/sconce-@VERSION@.dist-info" ] && [ -x "$package/sconce/bin/sconce" ]; then
    exec "$package/sconce/bin/sconce" "$@"
  fi
done
# Installed in another layout (pip install --target, say): Python knows where.
exec python3 -m sconce "$@"

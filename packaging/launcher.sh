#!/bin/sh
# The command `sconce` of the wheel: starts the program that lies beside the Python package, without starting Python.
here=$(dirname "$(readlink -f "$0")")
python=$here/python3
[ -x "$python" ] || python=python3
# Compares with the PyTorch model, so this one is in Python.
if [ "${1:-}" = compare ]; then
  shift
  exec "$python" -m sconce.compare "$@"
fi
for package in "$here"/../lib/python3*/*-packages "$here"/../lib64/python3*/*-packages; do
  if [ -d "$package/sconce-@VERSION@.dist-info" ] && [ -x "$package/sconce/bin/sconce" ]; then
    exec "$package/sconce/bin/sconce" "$@"
  fi
done
# Installed in another layout (pip install --target, say): Python knows where.
exec "$python" -m sconce "$@"

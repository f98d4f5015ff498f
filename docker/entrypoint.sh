#!/bin/sh
# Arguments go to `sconce serve`. Without packages mounted at /models, the digits example is served.
set -e
what=/models
[ -n "$(ls -A /models)" ] || what=/opt/sconce/share/sconce/digits.pt2
exec /opt/sconce/bin/sconce serve "$@" "$what"

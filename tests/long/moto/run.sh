#!/usr/bin/env bash
# moto's server of S3 (PyPI): `sconce pull` and a served repository. Needs python with requirements.txt on PATH, and
# SCONCE_PROGRAM. The last line is "N passed, N failed".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
exec python tests/long/moto/check.py "${SCONCE_PROGRAM:-build/release/server/sconce}"

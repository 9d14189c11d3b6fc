#!/usr/bin/env bash
# Sets this machine up where needed, then runs the test suite; further arguments go to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
packaging/setup.sh dev
export QT_QPA_PLATFORM=offscreen OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
exec "${AVATAR_VENV:-$PWD/.venv}/bin/python" -m pytest "$@"

#!/usr/bin/env bash
# Sets this machine up where needed, then starts Avatar Studio.
#   packaging/run.sh [studio options]            the desktop app with its own engine
#   packaging/run.sh render --image F --audio F --out F.mp4    a talking picture without a screen
#   packaging/run.sh engine serve|bench|doctor|train ...       the engine's commands
#   packaging/run.sh qa run|compare|report|validate ...        do the lips fit the sound?
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$here/setup.sh"
bin=${AVATAR_VENV:-$here/../.venv}/bin
case "${1:-}" in
  render) exec "$bin/avatar-engine" "$@" ;;
  engine) shift; exec "$bin/avatar-engine" "$@" ;;
  qa) shift; exec "$bin/avatar-qa" "$@" ;;
esac
if [ "$(uname)" = Linux ] && [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}${QT_QPA_PLATFORM:-}" ]; then
  echo "No screen here (DISPLAY is not set): use 'packaging/run.sh render --image FILE --audio FILE --out FILE.mp4'." >&2
  exit 2
fi
exec "$bin/avatar-studio" "$@"

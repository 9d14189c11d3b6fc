#!/usr/bin/env bash
# Everything a fresh machine needs: system libraries, a virtual environment in .venv, the Python
# packages and the face model. Run again at any time: what is there already is left alone.
# usage: packaging/setup.sh [dev]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
extra=${1:-}
venv=${AVATAR_VENV:-$PWD/.venv}

# What Qt's xcb platform and PortAudio load at run time, the PulseAudio door of ALSA, and pactl,
# which tells when a device is unplugged.
libraries=(libegl1 libgl1 libxkbcommon-x11-0 libxcb-cursor0 libxcb-icccm4 libxcb-image0
  libxcb-keysyms1 libxcb-randr0 libxcb-render-util0 libxcb-shape0 libxcb-xinerama0 libxcb-xkb1
  libdbus-1-3 libfontconfig1 libglib2.0-0 libportaudio2 libasound2-plugins pulseaudio-utils
  fonts-dejavu-core)
# The tests of real capture and playback start a sound server of their own.
[ "$extra" = dev ] && libraries+=(pulseaudio)

say() { printf '%s\n' "$*" >&2; }

find_python() {
  local candidate
  for candidate in python3.12 python3.11 python3.13 python3; do
    if command -v "$candidate" >/dev/null &&
      "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'; then
      command -v "$candidate"
      return
    fi
  done
  say "No Python 3.11 to 3.13 found: install one (Debian: apt install python3 python3-venv)"
  exit 2
}

as_root() { # runs a command as root, or fails when that needs a password
  if [ "$(id -u)" = 0 ]; then "$@"; else command -v sudo >/dev/null && sudo -n "$@" 2>/dev/null; fi
}

install_debian() { # installs packages when it may; returns 1 when it may not
  as_root true || return 1
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update >&2 &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
      "$@" >/dev/null
}

system_libraries() {
  command -v dpkg-query >/dev/null || { say "Not Debian: Qt needs the xcb libraries, sound needs PortAudio."; return; }
  local missing=() name
  for name in "$@"; do
    dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
  done
  [ ${#missing[@]} = 0 ] && return
  say "Installing system libraries: ${missing[*]}"
  install_debian "${missing[@]}" ||
    say "Not allowed to install system libraries; ask for: apt install ${missing[*]}"
}

make_venv() {
  local python
  python=$(find_python)
  [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1 && return
  say "Making a virtual environment in $venv"
  "$python" -m venv "$venv" >/dev/null 2>&1 && return
  # Debian splits venv off: install it, or make the environment with virtualenv from pip.
  install_debian python3-venv && "$python" -m venv --clear "$venv" && return
  local bootstrap
  bootstrap=$(mktemp -d)
  if "$python" -m pip install -q --target "$bootstrap" virtualenv &&
    PYTHONPATH=$bootstrap "$python" -m virtualenv -q "$venv"; then
    rm -rf "$bootstrap"
    return
  fi
  say "Cannot make a virtual environment: apt install python3-venv"
  exit 1
}

pip_install() { # quiet when it goes well, its last lines when it does not
  local log=$venv/avatar-setup.log
  "$venv/bin/python" -m pip install -q --disable-pip-version-check "$@" >"$log" 2>&1 && return
  tail -n 20 "$log" >&2
  say "pip could not install $*: see $log"
  exit 1
}

python_packages() {
  local wanted stamp=$venv/avatar-setup.stamp
  wanted="$(cat pyproject.toml packaging/*.py packaging/setup.sh | cksum) $extra $PWD"
  grep -qxF "$wanted" "$stamp" 2>/dev/null && return
  say "Installing Python packages (a few minutes the first time)"
  pip_install --upgrade pip
  # torch first and by itself: the version whose CPU build is small where the index offers one.
  pip_install "torch==2.13.0"
  pip_install -e ".${extra:+[$extra]}"
  printf '%s\n' "$wanted" >>"$stamp"
}

system_libraries "${libraries[@]}"
make_venv
python_packages
# Its own check is quick and tells when the files have gone since.
"$venv/bin/python" packaging/face_model.py >&2

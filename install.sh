#!/bin/sh
# Installs nanobot for this user on Linux or macOS, with a Node of its own where the machine has none
# that is new enough. "sh install.sh --uninstall" removes it; the home with your data stays.
#
# NANOBOT_PREFIX       folder of the program; default: ~/.local/share/nanobot
# NANOBOT_PACKAGE      a packed file instead of the registry; NANOBOT_VERSION: a version of the registry
# NANOBOT_REGISTRY     another npm registry
# NANOBOT_NODE_MIRROR  another source of Node; default: https://nodejs.org/dist

# In a function, which runs after its last line is read: half a download does nothing.
main() {
  set -eu
  package=nanobot-gateway
  major=24
  prefix=${NANOBOT_PREFIX:-$HOME/.local/share/nanobot}
  launcher=$HOME/.local/bin/nanobot
  mirror=${NANOBOT_NODE_MIRROR:-https://nodejs.org/dist}
  case "${1:-}" in
    '') install ;;
    --uninstall) uninstall ;;
    *) fail "unknown option $1; there is --uninstall" ;;
  esac
}

say() { printf '%s\n' "$*"; }
fail() {
  say "nanobot: $*" >&2
  exit 1
}

install() {
  mkdir -p "$prefix/versions" "$(dirname "$launcher")"
  work=$(mktemp -d "$prefix/install.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  find_node
  say "Installing $package ..."
  npm_install
  version=$("$node" -p 'require(process.argv[1]).version' "$work/program/node_modules/$package/package.json")
  rm -rf "$prefix/versions/$version.old"
  if [ -d "$prefix/versions/$version" ]; then
    mv "$prefix/versions/$version" "$prefix/versions/$version.old"
  fi
  mv "$work/program" "$prefix/versions/$version"
  rm -rf "$prefix/versions/$version.old"
  ln -s "versions/$version" "$work/current"
  "$node" -e 'require("fs").renameSync(process.argv[1], process.argv[2])' "$work/current" "$prefix/current"
  write_launcher
  say "Installed nanobot $("$launcher" --version): $launcher"
  case ":$PATH:" in
    *":$(dirname "$launcher"):"*) say 'Next: nanobot onboard, then: nanobot service install' ;;
    *) say "$(dirname "$launcher") is not on your PATH. Add it, or run: $launcher onboard" ;;
  esac
}

is_new() { "$1" -e "process.exit(parseInt(process.versions.node) >= $major ? 0 : 1)" 2>/dev/null; }

# Sets $node, and $npm as a script that it runs.
find_node() {
  node=$(command -v node || true)
  if [ -n "$node" ] && is_new "$node" && npm=$(command -v npm); then return; fi
  node=$prefix/node/bin/node
  if ! is_new "$node"; then bring_node; fi
  npm=$prefix/node/bin/npm
}

bring_node() {
  case "$(uname -s)" in
    Linux) system=linux ;;
    Darwin) system=darwin ;;
    *) fail "there is no Node here for $(uname -s). Install Node $major, then run this again." ;;
  esac
  case "$(uname -m)" in
    x86_64 | amd64) machine=x64 ;;
    aarch64 | arm64) machine=arm64 ;;
    *) fail "there is no Node here for $(uname -m). Install Node $major, then run this again." ;;
  esac
  if [ $system = linux ] && ldd --version 2>&1 | grep -qi musl; then
    fail "this system uses musl, for which Node publishes no program. Install Node $major (Alpine: apk add nodejs npm), then run this again."
  fi
  say "No Node $major or newer: fetching it from $mirror ..."
  fetch "$mirror/latest-v$major.x/SHASUMS256.txt" "$work/sums"
  file=$(sed -n "s/^[0-9a-f]* [ *]\(node-v[0-9.]*-$system-$machine\.tar\.gz\)\$/\1/p" "$work/sums")
  [ -n "$file" ] || fail "$mirror has no Node $major for $system-$machine"
  fetch "$mirror/latest-v$major.x/$file" "$work/$file"
  grep "[ *]$file\$" "$work/sums" >"$work/sum"
  if command -v sha256sum >/dev/null; then check='sha256sum -c'; else check='shasum -a 256 -c'; fi
  (cd "$work" && $check sum >/dev/null 2>&1) || fail "the checksum of $file is wrong; nothing is installed"
  mkdir "$work/node"
  tar -xzf "$work/$file" -C "$work/node" --strip-components=1
  rm -rf "$prefix/node"
  mv "$work/node" "$prefix/node"
}

fetch() {
  if command -v curl >/dev/null; then
    curl -fsSL --retry 3 -o "$2" "$1" || fail "cannot fetch $1"
  elif command -v wget >/dev/null; then
    wget -qO "$2" "$1" || fail "cannot fetch $1"
  else
    fail 'curl or wget is needed'
  fi
}

npm_install() {
  what=${NANOBOT_PACKAGE:-$package@${NANOBOT_VERSION:-latest}}
  set -- install --prefix "$work/program" --no-audit --no-fund --no-update-notifier --loglevel=error
  # Nothing stays of it in ~/.npm.
  if [ -z "${npm_config_cache:-}" ]; then set -- "$@" --cache "$work/cache"; fi
  if [ -n "${NANOBOT_REGISTRY:-}" ]; then set -- "$@" --registry "$NANOBOT_REGISTRY"; fi
  mkdir "$work/program"
  PATH=$(dirname "$node"):$PATH "$npm" "$@" "$what" || fail "npm cannot install $what; nothing is changed"
}

quoted() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }

write_launcher() {
  {
    say '#!/bin/sh'
    say '# Written by install.sh of nanobot.'
    say "prefix=$(quoted "$prefix")"
    say "node=$(quoted "$node")"
    cat <<'END'
[ -x "$node" ] || node=node
exec "$node" "$prefix/current/node_modules/.bin/nanobot" "$@"
END
  } >"$work/launcher"
  chmod 755 "$work/launcher"
  mv "$work/launcher" "$launcher"
}

uninstall() {
  if [ -x "$launcher" ]; then
    code=0
    said=$("$launcher" service uninstall 2>&1) || code=$?
    # 6: none is installed.
    if [ $code != 6 ]; then say "$said"; fi
    case $code in 0 | 6) ;; *) fail 'the service is not removed, so the program stays too' ;; esac
  fi
  rm -rf "$prefix" "${XDG_CACHE_HOME:-$HOME/.cache}/nanobot"
  if grep -q 'install.sh of nanobot' "$launcher" 2>/dev/null; then rm "$launcher"; fi
  say "Removed. Your data stays in ${NANOBOT_HOME:-$HOME/.nanobot}"
}

main "$@"

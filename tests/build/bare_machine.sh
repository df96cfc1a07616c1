#!/usr/bin/env bash
# A bare Debian 12 must come to a trained model by one command.
#
# Makes a minimal Debian root with debootstrap, clones the committed tree into it, and runs `./dev VERB` there (default:
# demo) with nothing else installed by hand. The mirror, proxies, pip's settings and extra certificate authorities of the
# host are passed on, since they are how a machine reaches the network; everything else starts from nothing.
#
#   tests/build/bare_machine.sh [--keep] [VERB [ARGS...]]      as root; or: ./dev soak bare …
#
# --keep leaves the root for a look. SKYTRAIN_BARE_ROOT: where to make it (default /var/tmp/skytrain-bare).
set -euo pipefail
repository=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
bare=${SKYTRAIN_BARE_ROOT:-/var/tmp/skytrain-bare}
keep=false
if [[ ${1:-} == --keep ]]; then
  keep=true
  shift
fi
[[ $# -gt 0 ]] || set -- demo

[[ $EUID -eq 0 ]] || { echo "bare_machine: needs root for debootstrap and chroot" >&2; exit 5; }
if [[ -e $bare && ! -e $bare/.skytrain-bare ]]; then
  echo "bare_machine: $bare exists and was not made by this script; set SKYTRAIN_BARE_ROOT" >&2
  exit 5
fi

mounts=(proc dev)
# shellcheck disable=SC2317
unmount() {
  local folder
  for folder in "${mounts[@]}"; do
    if mountpoint -q "$bare/$folder"; then umount --recursive --lazy "$bare/$folder"; fi
  done
}
# shellcheck disable=SC2317 # called by the trap
leave() {
  unmount
  if ! $keep; then rm -rf --one-file-system "$bare"; fi
}
trap leave EXIT

# The mirror that this host itself uses: the first Debian one of its sources, in either format.
host_mirror() {
  local found
  found=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
    sed -nE 's/^(deb (\[[^]]*\] )?|URIs: *)(https?:[^ ]*debian\/?)( .*)?$/\3/p' | head -n 1)
  printf '%s' "${found:-http://deb.debian.org/debian}"
}

began=$SECONDS
unmount
rm -rf --one-file-system "$bare"
mkdir -p "$bare"
touch "$bare/.skytrain-bare"
mirror=$(host_mirror)
echo "bare_machine: debootstrap bookworm from $mirror into $bare" >&2
debootstrap --variant=minbase bookworm "$bare" "$mirror" >"$bare.log" 2>&1 || { tail -n 20 "$bare.log" >&2; exit 5; }

cp /etc/resolv.conf /etc/hosts "$bare/etc/"
if [[ -f /etc/pip.conf ]]; then cp /etc/pip.conf "$bare/etc/"; fi
if compgen -G '/usr/local/share/ca-certificates/*.crt' >/dev/null; then
  mkdir -p "$bare/usr/local/share/ca-certificates"
  cp /usr/local/share/ca-certificates/*.crt "$bare/usr/local/share/ca-certificates/"
fi
environment=(HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LANG=C.UTF-8)
while IFS= read -r variable; do environment+=("$variable"); done < <(env | grep -E \
  '^(PIP_[A-Z_]+|https?_proxy|no_proxy|HTTPS?_PROXY|NO_PROXY|LIBTORCH|SKYTRAIN_JOBS|SKYTRAIN_APT_MIRROR|CI)=' || true)
mkdir -p "$bare/srv"
git clone -q --no-hardlinks "$repository" "$bare/srv/skytrain"
if [[ -d $repository/../shared ]]; then
  mkdir -p "$bare/srv/shared"  # as a clone has it beside itself; read by the tests labelled `shared`
  mount --bind -o ro "$(readlink -f "$repository/../shared")" "$bare/srv/shared"
  mounts+=(srv/shared)
fi
mount -t proc proc "$bare/proc"
mount --rbind /dev "$bare/dev"
mount --make-rslave "$bare/dev"

echo "bare_machine: $(chroot "$bare" sh -c 'cat /etc/debian_version; dpkg-query -f . -W | wc -c' | paste -sd' ' -)" \
  "packages; root ready after $((SECONDS - began)) s; now ./dev $*" >&2
began=$SECONDS
status=0
env -i "${environment[@]}" chroot "$bare" bash -c 'cd /srv/skytrain && exec ./dev "$@"' - "$@" </dev/null || status=$?
echo "bare_machine: ./dev $* ended with $status after $((SECONDS - began)) s" >&2
exit "$status"

# shellcheck shell=bash
# A bundle that runs on any x86_64 Linux: our programs, the libraries they need, and the loader and C library of the
# machine that built it, because a program built on Debian 12 needs a newer C library than many servers have.

package() {
  local version bundle archive
  [[ ${1:-} == "" || ${1:-} == --try ]] || fail 2 "unknown option '$1'" "./dev package [--try]"
  build release skytrain skytrain-worker
  install_packages "${packages_package[@]}"
  [[ -x build/release/libexec/skytrain-worker ]] || fail 1 "build/release/libexec/skytrain-worker is missing"
  version=$(sed -n 's/^CMAKE_PROJECT_VERSION:[A-Z]*=//p' build/release/CMakeCache.txt)
  bundle="build/package/skytrain-$version-linux-x86_64"
  archive="$bundle.tar.zst"
  rm -rf "$bundle" "$archive"
  mkdir -p "$bundle"/{bin,libexec,lib/programs,share/doc}
  run_logged package-launcher "assembling $bundle" \
    cc -std=gnu17 -Os -s -static -Wall -Wextra -Werror -o "$bundle/bin/skytrain" tools/package/launcher.c ||
    fail 1 "the launcher could not be compiled"
  cp "$bundle/bin/skytrain" "$bundle/libexec/skytrain-worker"
  install_program build/release/bin/skytrain "$bundle"
  install_program build/release/libexec/skytrain-worker "$bundle"
  cp -r recipes LICENSE README.md CHANGELOG.md "$bundle/"
  mkdir -p "$bundle/data"
  cp -r data/mnist "$bundle/data/"
  tar -C build/package --sort=name --owner=0 --group=0 --numeric-owner -c "$(basename "$bundle")" |
    zstd -q -T0 -10 -f -o "$archive"
  say "  $archive  $(du -m "$archive" | cut -f1) MB, unpacked $(du -sm "$bundle" | cut -f1) MB"
  if [[ ${1:-} == --try ]]; then try_package "$archive"; fi
}

# A program without its debug information and build paths, and every library that the loader would map for it.
install_program() {  # PROGRAM BUNDLE
  local program=$1 bundle=$2 target library
  target="$bundle/lib/programs/$(basename "$program")"
  strip --strip-unneeded -o "$target" "$program"
  while IFS= read -r library; do
    [[ -f $bundle/lib/$(basename "$library") ]] || cp -L "$library" "$bundle/lib/"
    licence_of "$library" "$bundle/share/doc"
  done < <(libraries_of "$program")
  cmake -P tools/package/remove_rpath.cmake "$target"
}

libraries_of() {
  local listing
  listing=$(ldd "$1")
  if grep -q 'not found' <<<"$listing"; then fail 1 "$1 misses libraries" "$(grep 'not found' <<<"$listing")"; fi
  awk '$2 == "=>" {print $3} $1 ~ /^\// {print $1}' <<<"$listing"
}

# The terms under which a library is passed on: of its Debian package, or of the wheel it came from.
licence_of() {  # LIBRARY FOLDER
  local owner file
  # Where /lib is a link to /usr/lib, dpkg knows a library by one of the two names.
  owner=$(dpkg-query -S "$1" "/usr$1" "$(readlink -f "$1")" 2>/dev/null | head -n 1 | cut -d: -f1 || true)
  if [[ -n $owner && -f /usr/share/doc/$owner/copyright ]]; then
    mkdir -p "$2/$owner"
    cp -L "/usr/share/doc/$owner/copyright" "$2/$owner/"
    return
  fi
  for file in .deps/"torch-$libtorch_version"/*.dist-info/{,licenses/}{LICENSE,NOTICE,License}*; do
    [[ -f $file ]] || continue
    owner=$(basename "${file%%.dist-info*}")
    mkdir -p "$2/$owner"
    cp "$file" "$2/$owner/"
  done
}

# Unpacks the bundle into an empty root that has only /proc and /dev and trains there.
try_package() {  # ARCHIVE
  local home
  [[ $EUID -eq 0 ]] || fail 5 "--try needs root for chroot" "sudo ./dev package --try"
  home=$(basename "$1" .tar.zst)
  rm -rf --one-file-system build/package/try
  mkdir -p build/package/try/{proc,dev}
  zstd -q -d -c "$1" | tar -x -C build/package/try
  # A mount namespace of its own: the mounts vanish with it, whatever happens.
  # shellcheck disable=SC2016
  run_logged package-try "training with the bundle in an empty root" unshare --mount bash -euc '
    mount -t proc proc build/package/try/proc
    mount --rbind /dev build/package/try/dev
    exec env -i "$(command -v chroot)" build/package/try "/$1/bin/skytrain" train "/$1/recipes/synthetic_mlp.yaml" --runs /runs --json
  ' - "$home" || fail 1 "the bundle does not run in an empty root"
  grep '^{' build/log/package-try.log | tail -n 1
  [[ -n $(find build/package/try/runs -name report.html) ]] || fail 1 "the bundle's run left no report"
  rm -rf --one-file-system build/package/try
}

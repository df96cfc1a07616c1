# shellcheck shell=bash
# Configure and build a preset; the demo.

# configure PRESET: only when the preset, LibTorch or the presets' file changed; CMake itself sees all other changes.
configure() {
  local preset=$1 folder="build/$1" torch='' stamp arguments=()
  if [[ $preset != asan && $preset != tsan && $preset != fuzz ]]; then
    torch=$(torch_root)
    arguments=("-DTORCH_ROOT=$torch")
  fi
  stamp="$torch $(cksum <CMakePresets.json)"
  if [[ -f $folder/build.ninja && $(cat "$folder/.dev-stamp" 2>/dev/null) == "$stamp" ]]; then return; fi
  run_logged "configure-$preset" "configuring $preset" cmake --preset "$preset" "${arguments[@]}" ||
    fail 1 "CMake could not configure $preset" "./dev clean starts afresh"
  printf '%s' "$stamp" >"$folder/.dev-stamp"
}

# build [PRESET [TARGET...]]
build() {
  local preset=${1:-release} jobs
  shift || true
  case $preset in
    release | debug | asan | tsan | fuzz) ;;
    *) fail 2 "unknown preset '$preset'" "known: release debug asan tsan fuzz" ;;
  esac
  check_system
  install_packages "${packages_build[@]}"
  need_disk 1 "building"
  configure "$preset"
  jobs=$(compile_jobs)
  run_logged "build-$preset" "building $preset" ninja -C "build/$preset" -j "$jobs" "$@" ||
    fail 1 "the build failed" "the first error: grep -n -m 1 'error:' build/log/build-$preset.log"
  if [[ $preset == release && -x build/release/bin/skytrain ]]; then say "  build/release/bin/skytrain"; fi
}

demo() {
  build release skytrain skytrain-worker  # the programs, without the tests
  build/release/bin/skytrain train recipes/mnist_simplecnn.yaml "$@"
}

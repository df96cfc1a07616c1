# shellcheck shell=bash
# LibTorch: from its wheels on PyPI into .deps/torch-<version>/, or a folder of the user's.

libtorch_version=${LIBTORCH:-2.11.0}

# is_libtorch FOLDER
is_libtorch() { [[ -f $1/lib/libtorch_cpu.so && -f $1/include/torch/csrc/api/include/torch/torch.h ]]; }

# Prints the folder to build against; fetches it first if need be.
torch_root() {
  local folder=".deps/torch-$libtorch_version/torch"
  if [[ -n ${TORCH_ROOT:-} ]]; then
    for folder in "$TORCH_ROOT" "$TORCH_ROOT/torch" "$TORCH_ROOT/libtorch"; do
      if is_libtorch "$folder"; then
        readlink -f "$folder"
        return
      fi
    done
    fail 5 "TORCH_ROOT=$TORCH_ROOT has no include/ with torch/torch.h and lib/libtorch_cpu.so" \
      "give a LibTorch folder, or: python3 -c 'import torch; print(torch.__path__[0])'"
  fi
  if ! is_libtorch "$folder"; then fetch_libtorch; fi
  readlink -f "$folder"
}

# What C++ needs of the wheels: headers and shared libraries. Python's half (libtorch_python.so and all .py) and the
# test programs are left out.
unpack_wheel() {  # WHEEL FOLDER
  local patterns
  case $(basename "$1") in
    torch-*) patterns=('torch/include/*' 'torch/lib/*.so*' '*.dist-info/METADATA' '*.dist-info/*LICENSE*' '*.dist-info/*NOTICE*') ;;
    *) patterns=('nvidia/*.so*' '*.dist-info/METADATA' '*.dist-info/*icense*') ;;
  esac
  unzip -q -o "$1" "${patterns[@]}" -x 'torch/lib/libtorch_python.so' -d "$2" || [[ $? -eq 11 ]]  # 11: a pattern matched nothing
}

fetch_libtorch() {
  local list="tools/libtorch/$libtorch_version.txt" staging known
  known=$(cd tools/libtorch && printf '%s ' *.txt | sed 's/\.txt//g')
  [[ -f $list ]] || fail 2 "LIBTORCH=$libtorch_version is not known" "known: $known"
  mkdir -p .deps
  exec 9>.deps/.lock
  flock 9  # two ./dev at once: the second waits and finds it done
  if is_libtorch ".deps/torch-$libtorch_version/torch"; then return; fi
  need_disk 4 "fetching and building against LibTorch"
  rm -rf .deps/staging
  staging=.deps/staging
  mkdir -p "$staging/wheels" "$staging/tmp" "$staging/tree"
  # The Python tag of a wheel does not matter to C++, so a fixed one is asked for, whatever Python is here.
  local pip=(/usr/bin/python3 -m pip --no-input --disable-pip-version-check download --no-cache-dir --progress-bar off
    --only-binary=:all: --no-deps --require-hashes --implementation cp --python-version 3.12 --abi cp312 --abi none
    --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 --platform manylinux_2_17_x86_64
    --platform manylinux2014_x86_64 --dest "$staging/wheels" --requirement "$list")
  if ! watch_folder=$staging TMPDIR="$root/$staging/tmp" run_logged libtorch-fetch \
    "fetching LibTorch $libtorch_version (0.5 to 0.9 GB)" "${pip[@]}"; then
    rm -rf "$staging"
    if grep -qi 'DO NOT MATCH THE HASHES' build/log/libtorch-fetch.log; then
      fail 5 "the index served another file than tools/libtorch names" "use PyPI itself or a faithful mirror of it"
    fi
    fail 5 "LibTorch $libtorch_version could not be fetched: no network, or an index without it" \
      "check the connection; https_proxy, PIP_INDEX_URL=URL (a mirror) and TORCH_ROOT=DIR (no download) help"
  fi
  local wheel
  for wheel in "$staging"/wheels/*.whl; do
    run_logged libtorch-unpack "unpacking $(basename "$wheel")" unpack_wheel "$wheel" "$staging/tree" ||
      fail 5 "$(basename "$wheel") could not be unpacked" "is the disk full? then run ./dev again"
  done
  is_libtorch "$staging/tree/torch" || fail 1 "the wheel of LibTorch $libtorch_version has an unexpected layout"
  rm -rf ".deps/torch-$libtorch_version"
  mv "$staging/tree" ".deps/torch-$libtorch_version"
  rm -rf "$staging"
  exec 9>&-
}

setup() {
  local folder
  check_system
  install_packages "${packages_build[@]}"
  folder=$(torch_root)
  say "LibTorch: $folder"
}

# shellcheck shell=bash
# Tests, judges, soak and benchmarks.

export SKYTRAIN_SHARED=${SKYTRAIN_SHARED:-$root/../shared}

# run_tests [--shared] [CTEST-ARGS]: the sanitizer build's unit tests first, then everything of the release build, so that
# CTest's own summary of the latter is the last thing on the screen.
run_tests() {
  local shared=${CI:-false} arguments=() exclude=() sanitized=0 status=0
  while [[ $# -gt 0 ]]; do
    case $1 in
      --shared) shared=true ;;
      *) arguments+=("$1") ;;
    esac
    shift
  done
  if [[ $shared != true && $shared != 1 ]]; then exclude=(-LE '^shared$'); fi
  build release
  build asan
  install_packages "${packages_test[@]}"
  run_logged test-asan "unit tests under AddressSanitizer and UBSan" \
    env ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1 \
    ctest --test-dir build/asan -L unit --output-on-failure --no-tests=error -j "$(nproc)" || sanitized=$?
  if [[ $sanitized -eq 0 ]]; then
    say "  $(grep -E 'tests passed' build/log/test-asan.log | tail -n 1)"
  fi
  ctest --test-dir build/release --output-on-failure --no-tests=error -j "$(nproc)" \
    "${exclude[@]}" "${arguments[@]}" </dev/null || status=$?
  if [[ $sanitized -ne 0 ]]; then
    fail 1 "tests failed under the sanitizers" "see build/log/test-asan.log"
  fi
  return "$status"
}

# The folders whose work a judge looks at. A judge is tests/judges/judge_<name>.py.
declare -A judged_folders=(
  [tensorboard]="skytrain/record skytrain/train"
  [weights]="skytrain/checkpoint skytrain/tensor skytrain/model skytrain/train skytrain/data"
  [report]="skytrain/observe skytrain/record"
  [pt]="skytrain/weights skytrain/checkpoint"
  [torchscript]="skytrain/model"
  [formats]="skytrain/data skytrain/cli"
  [run]="skytrain/launch skytrain/cli"
  [slurm]="skytrain/launch skytrain/cli"
)

# Files changed in the work tree and since the commit before the last one on the main line.
changed_files() {
  local base
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [[ -z $base || $base == $(git rev-parse HEAD) ]]; then base=$(git rev-parse -q --verify HEAD~1 || true); fi
  [[ -n $base ]] || return 1
  git diff --name-only "$base"
  git ls-files --others --exclude-standard
}

judges() {
  local only_changed=false judge name changed='' pattern run selected=() failed=()
  [[ ${1:-} == --changed ]] && only_changed=true
  if $only_changed && ! changed=$(changed_files); then
    say "what changed is not known (no earlier commit): running all judges"
    only_changed=false
  fi
  for judge in tests/judges/judge_*.py; do
    name=$(basename "$judge" .py)
    name=${name#judge_}
    pattern="tests/judges ${judged_folders[$name]:-skytrain}"
    if ! $only_changed || grep -qE "^(${pattern// /|})/" <<<"$changed"; then selected+=("$name"); fi
  done
  if [[ ${#selected[@]} -eq 0 ]]; then
    say "judges: nothing that they look at has changed"
    return 0
  fi
  build release
  install_packages "${packages_judges[@]}"
  judges_python
  rm -rf build/judges
  mkdir -p build/judges
  run_logged judges-train "training a run to be judged" build/release/bin/skytrain train \
    recipes/mnist_simplecnn.yaml --log-every 1 --runs build/judges/runs --json || fail 1 "the run to be judged failed"
  run=$(grep '^{' build/log/judges-train.log | tail -n 1 |
    /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["run_dir"])')
  for name in "${selected[@]}"; do
    local arguments=("$run")
    if [[ $name == report ]]; then arguments=("$run/report.html" --shots build/judges); fi
    run_logged "judge-$name" "judge: $name" .deps/judges/bin/python "tests/judges/judge_$name.py" "${arguments[@]}" ||
      failed+=("$name")
  done
  if [[ ${#failed[@]} -gt 0 ]]; then fail 1 "judges that object: ${failed[*]}"; fi
  say "judges: ${#selected[@]} of ${#selected[@]} agree: ${selected[*]}"
}

# A virtual environment with the judges' packages; made anew when their list changes.
judges_python() {
  local list=tests/judges/requirements.txt
  if cmp -s "$list" .deps/judges/requirements.txt; then return; fi
  rm -rf .deps/judges
  mkdir -p .deps
  run_logged judges-venv "making the judges' Python environment" /usr/bin/python3 -m venv .deps/judges ||
    fail 5 "the judges' Python environment could not be made"
  run_logged judges-pip "fetching the judges' packages" .deps/judges/bin/python -m pip --disable-pip-version-check \
    install --no-cache-dir --progress-bar off --requirement "$list" ||
    fail 5 "the judges' Python packages could not be fetched" "check the network; PIP_INDEX_URL takes a mirror"
  cp "$list" .deps/judges/requirements.txt
}

# Programs of a folder tests/soak or bench: NAME.sh, NAME.py or NAME/run.
listed() {  # FOLDER
  local entry
  for entry in "$1"/*; do
    case $entry in
      *.sh | *.py) basename "${entry%.*}" ;;
      *) if [[ -x $entry/run ]]; then basename "$entry"; fi ;;
    esac
  done
}

run_listed() {  # FOLDER NAME ARGS...
  local folder=$1 name=$2
  shift 2
  if [[ -x $folder/$name/run ]]; then "$folder/$name/run" "$@"
  elif [[ -f $folder/$name.py ]]; then "${SKYTRAIN_PYTHON:-/usr/bin/python3}" "$folder/$name.py" "$@"
  elif [[ -f $folder/$name.sh ]]; then bash "$folder/$name.sh" "$@"
  else fail 2 "there is no '$name' in $folder" "there is: $(listed "$folder" | tr '\n' ' ')"
  fi
}

soak() {
  local name=${1:-} names
  if [[ $name == bare ]]; then
    shift
    install_packages "${packages_bare[@]}"
    tests/build/bare_machine.sh "$@"
    return
  fi
  if [[ $name == fuzz ]]; then
    shift
    fuzz "$@"
    return
  fi
  names=$(listed tests/soak)
  if [[ -z $names ]]; then
    fail 2 "there are no soak tests yet" "./dev soak bare builds and trains in a bare Debian root"
  fi
  build release
  install_packages "${packages_test[@]}"
  if [[ -n $name ]]; then
    shift
    run_listed tests/soak "$name" "$@"
  else
    for name in $names; do
      say "soak: $name"
      run_listed tests/soak "$name"
    done
  fi
}

bench() {
  if [[ $# -eq 0 ]]; then
    say "./dev bench NAME, where NAME is one of: $(listed bench | tr '\n' ' ')"
    return
  fi
  build release
  if [[ $1 == step ]]; then
    run_logged optimizer_step "building the optimizer's benchmark" cmake --build build/release --target optimizer_step
  fi
  if [[ $1 == billion ]]; then
    run_logged billion_bench "building the benchmark of large sets" cmake --build build/release --target billion_bench
  fi
  if [[ $1 == checkpoint ]]; then
    run_logged checkpoint_io "building the benchmark of the disk" cmake --build build/release --target checkpoint_io
  fi
  run_listed bench "$@"
}

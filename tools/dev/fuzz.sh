# shellcheck shell=bash
# Fuzzing: `./dev soak fuzz [SECONDS [TARGET...]]`, each target on one core.

fuzz_targets=(weights pickle safetensors webdataset mds jsonl)  # tests/fuzz/fuzz_<name>.cc

fuzz() {
  local seconds=${1:-60} target targets=("${fuzz_targets[@]}") failed=() log
  shift || true
  [[ $seconds =~ ^[1-9][0-9]*$ ]] || fail 2 "'$seconds' is no number of seconds" "./dev soak fuzz [SECONDS [TARGET...]]"
  install_packages "${packages_fuzz[@]}"
  build fuzz fuzzers
  fuzz_corpus
  if [[ $# -gt 0 ]]; then targets=("$@"); fi
  mkdir -p build/fuzz/found
  for target in "${targets[@]}"; do
    [[ -x build/fuzz/fuzz/fuzz_$target ]] || fail 2 "there is no fuzz target '$target'" "there is: ${fuzz_targets[*]}"
    log="fuzz-$target"
    # What is found stays in build/fuzz/found, to be given to the target as its argument.
    run_logged "$log" "fuzzing $target for $seconds s" "build/fuzz/fuzz/fuzz_$target" \
      -max_total_time="$seconds" -dict="$(fuzz_words "$target")" -max_len=16384 -timeout=10 -malloc_limit_mb=64 \
      -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="build/fuzz/found/$target-" "build/fuzz/corpus/$target" ||
      failed+=("$target")
    say "  $(grep -oE 'number_of_executed_units: *[0-9]+' "build/log/$log.log" | grep -oE '[0-9]+$' || printf 'no') executions"
  done
  if [[ ${#failed[@]} -gt 0 ]]; then fail 1 "fuzzing broke: ${failed[*]}" "the inputs are in build/fuzz/found"; fi
}

# Words that the format knows.
fuzz_words() {  # TARGET
  local words=tests/fuzz/$1.dict
  [[ -f $words ]] || words=tests/fuzz/weights.dict
  printf '%s' "$words"
}

# Where each target begins: the test data. What earlier runs have found to be interesting stays.
fuzz_corpus() {
  local corpus=build/fuzz/corpus file
  mkdir -p "$corpus"/{weights,pickle,safetensors,webdataset,mds,jsonl}
  cp tests/testdata/formats/*.tar "$corpus/webdataset/"
  cp tests/testdata/jsonl/*.jsonl "$corpus/jsonl/"
  for file in tests/testdata/formats/*/{index.json,shard.*}; do cp "$file" "$corpus/mds/${file//\//-}"; done
  cp tests/testdata/weights/*.{pt,safetensors} "$corpus/weights/"
  cp tests/testdata/{weights/*,checkpoint/*/*/*}.safetensors "$corpus/safetensors/"
  for file in tests/testdata/weights/zip_*.pt; do
    # unzip objects to the archive without CRCs, and gives its content.
    unzip -q -p "$file" '*/data.pkl' >"$corpus/pickle/$(basename "$file" .pt).pkl" 2>/dev/null || true
  done
}

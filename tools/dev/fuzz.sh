# shellcheck shell=bash
# Fuzzing: `./dev fuzz [SECONDS [TARGET...]]`, each target on one core.

fuzz_targets=(weights pickle safetensors webdataset mds picture idx csv jsonl)  # tests/fuzz/fuzz_<name>.cc

# MB that one allocation may ask for. A picture's is what the largest takes that is decoded.
declare -A fuzz_malloc_limit=([picture]=1300)

fuzz() {
  local seconds=${1:-300} target targets=("${fuzz_targets[@]}") failed=() log
  shift || true
  [[ $seconds =~ ^[1-9][0-9]*$ ]] || fail 2 "'$seconds' is no number of seconds" "./dev fuzz [SECONDS [TARGET...]]"
  if [[ $# -gt 0 ]]; then targets=("$@"); fi
  for target in "${targets[@]}"; do
    [[ -f tests/fuzz/fuzz_$target.cc ]] || fail 2 "there is no fuzz target '$target'" "there is: ${fuzz_targets[*]}"
  done
  install_packages "${packages_fuzz[@]}"
  build fuzz fuzzers
  fuzz_corpus
  mkdir -p build/fuzz/found
  for target in "${targets[@]}"; do
    log="fuzz-$target"
    # What is found stays in build/fuzz/found, to be given to the target as its argument.
    run_logged "$log" "fuzzing $target for $seconds s" "build/fuzz/fuzz/fuzz_$target" \
      -max_total_time="$seconds" -dict="$(fuzz_words "$target")" -max_len=16384 -timeout=10 \
      -malloc_limit_mb="${fuzz_malloc_limit[$target]:-64}" -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="build/fuzz/found/$target-" "build/fuzz/corpus/$target" || failed+=("$target")
    say "  $(fuzz_figures "build/log/$log.log")"
  done
  if [[ ${#failed[@]} -gt 0 ]]; then fail 1 "fuzzing broke: ${failed[*]}" "the inputs are in build/fuzz/found"; fi
}

# "1234 executions, 567 edges of the code"
fuzz_figures() {  # LOG
  printf '%s executions, %s edges of the code' \
    "$(grep -oE 'number_of_executed_units: *[0-9]+' "$1" | grep -oE '[0-9]+$' || printf 'no')" \
    "$(grep -oE 'cov: [0-9]+' "$1" | tail -n 1 | grep -oE '[0-9]+' || printf 'no')"
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
  mkdir -p "$corpus"/{weights,pickle,safetensors,webdataset,mds,picture,idx,csv,jsonl}
  cp tests/testdata/formats/*.tar "$corpus/webdataset/"
  cp tests/testdata/jsonl/*.jsonl "$corpus/jsonl/"
  for file in tests/testdata/formats/*/{index.json,shard.*}; do cp "$file" "$corpus/mds/${file//\//-}"; done
  cp tests/testdata/weights/*.{pt,safetensors} "$corpus/weights/"
  cp tests/testdata/{weights/*,checkpoint/*/*/*}.safetensors "$corpus/safetensors/"
  for file in tests/testdata/weights/zip_*.pt; do
    # unzip objects to the archive without CRCs, and gives its content.
    unzip -q -p "$file" '*/data.pkl' >"$corpus/pickle/$(basename "$file" .pt).pkl" 2>/dev/null || true
  done
  cp tests/testdata/pictures/*.{jpg,png} "$corpus/picture/"
  build/fuzz/fuzz/make_pictures "$corpus/picture" || fail 1 "the corpus of pictures could not be made"
  fuzz_small_tables "$corpus"
}

# Of idx and csv, whose first byte says what follows (see their targets).
fuzz_small_tables() {  # CORPUS
  local images='\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x01\x10\x20\x30\x40' labels='\0\0\x08\x01\0\0\0\x02\x01\x02'
  printf '%b' "\x00$images" >"$1/idx/images"
  printf '%b' "\x08$images" >"$1/idx/images_to_pack"
  { printf '\x04' && printf '%b' "$images" | gzip -n; } >"$1/idx/images.gz"
  printf '%b' "\x01$labels" >"$1/idx/labels"
  printf '%b' "\x09$labels" >"$1/idx/labels_to_pack"
  { printf '\x05' && printf '%b' "$labels" | gzip -n; } >"$1/idx/labels.gz"
  { printf '\x02' && head -c 6146 /dev/zero; } >"$1/idx/cifar"
  { printf '\x06' && head -c 6146 /dev/zero | gzip -n; } >"$1/idx/cifar.gz"
  printf '\x03airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n' >"$1/idx/names"
  printf '\x00a,b,y\n1,2.5,cat\n-3e2,"4",dog\n' >"$1/csv/classes"
  printf '\x01# made by hand\r\na,"b ""c""",y\r\n1,2.5,0.25\r\n3,4,1\r\n' >"$1/csv/values"
  printf '\x020,1,2\n1,0,0\n' >"$1/csv/numbers"
}

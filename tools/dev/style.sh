# shellcheck shell=bash
# Formatting and static analysis.

cxx_files() { git ls-files --cached --others --exclude-standard 'skytrain/*.h' 'skytrain/*.cc' 'tests/*.cc' 'tests/*.h' 'bench/*.cc'; }

format() {
  install_packages "${packages_style[@]}"
  local files
  mapfile -t files < <(cxx_files)
  if [[ ${1:-} == --check ]]; then
    run_logged format "checking the format of ${#files[@]} files" clang-format --dry-run -Werror "${files[@]}" ||
      fail 1 "some files are not formatted" "./dev format"
  else
    clang-format -i "${files[@]}"
  fi
}

lint() {
  local files scripts jobs file existing=()
  format --check
  mapfile -t scripts < <(git ls-files --cached --others --exclude-standard '*.sh' dev .ci/run ':!tools/dev/*')
  run_logged shellcheck "shellcheck: ${#scripts[@]} scripts" shellcheck -x -a "${scripts[@]}" || fail 1 "shellcheck objects"
  configure release
  if [[ ${1:-} == --all ]]; then
    mapfile -t files < <(cxx_files | grep '\.cc$')
  else
    mapfile -t files < <({ changed_files || cxx_files; } | grep -E '^(skytrain|tests|bench)/.*\.cc$' | sort -u)
  fi
  tidy_commands
  for file in "${files[@]}"; do if [[ -f $file ]]; then existing+=("$file"); fi; done
  if [[ ${#existing[@]} -eq 0 ]]; then
    say "clang-tidy: no changed files"
    return
  fi
  jobs=$(compile_jobs)
  printf '%s\0' "${existing[@]}" >build/tidy/files
  run_logged tidy "clang-tidy: ${#existing[@]} files" \
    xargs -0 -n 1 -P "$jobs" -a build/tidy/files clang-tidy -p build/tidy --quiet || fail 1 "clang-tidy objects"
}

# Clang can't read GCC's precompiled header, so it gets the header's text under another name.
tidy_commands() {
  local header
  mkdir -p build/tidy
  for header in build/release/CMakeFiles/*.dir/cmake_pch.hxx; do
    if [[ -f $header ]]; then cp "$header" "build/tidy/$(basename "$(dirname "$header")" .dir).hxx"; fi
  done
  sed -E "s#-include [^ ]*CMakeFiles/([^/ ]*)\.dir/cmake_pch\.hxx#-include $root/build/tidy/\1.hxx#g" \
    build/release/compile_commands.json >build/tidy/compile_commands.json
}

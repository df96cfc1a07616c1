# shellcheck shell=bash
# Lines for people, and commands whose output goes to a file.

# say TEXT...: one calm line.
say() { printf '%s\n' "$*" >&2; }

# fail CODE WHAT [NEXT-STEP]: one clear line, what to do next, and the exit code (2 usage, 5 environment, 1 a failure of
# ours), the same codes as skytrain's.
fail() {
  local code=$1
  printf 'dev: %s\n' "$2" >&2
  if [[ -n ${3:-} ]]; then printf '  %s\n' "$3" >&2; fi
  exit "$code"
}

warn() { printf 'dev: warning: %s\n' "$*" >&2; }

# Reports on a log while a command fills it, until the caller ends it: ninja's [n/m] or the size of a folder.
watch_log() {  # TITLE LOG [FOLDER]
  local title=$1 log=$2 folder=${3:-} interval=15 began=$SECONDS state last='' never
  if [[ -t 2 ]]; then interval=1; fi
  exec {never}<> <(:)  # waiting with `read` leaves no `sleep` behind that would hold a pipe open
  while kill -0 $$ 2>/dev/null; do
    read -r -t "$interval" -u "$never" || true
    if [[ -n $folder ]]; then
      state="$(du -sm "$folder" 2>/dev/null | cut -f1 || true) MB"
    else
      state=$(tail -c 2000 "$log" 2>/dev/null | tr '\r' '\n' | grep -oE '^\[[0-9]+/[0-9]+\]' | tail -n 1 || true)
    fi
    if [[ -t 2 ]]; then
      printf '\r\033[K%s  %s  %d s' "$title" "$state" $((SECONDS - began)) >&2
    elif [[ $state != "$last" ]]; then
      say "  $state  $((SECONDS - began)) s"
      last=$state
    fi
  done
}

# run_logged NAME TITLE COMMAND...: runs it with its output in build/log/NAME.log. Returns its status; on failure shows
# the end of the log. watch_folder (a variable of the caller) is a folder whose growth is the progress.
run_logged() {
  local title=$2 log="build/log/$1.log" watcher status=0 began=$SECONDS
  shift 2
  mkdir -p build/log
  say "$title"
  watch_log "$title" "$log" "${watch_folder:-}" &
  watcher=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  kill "$watcher" 2>/dev/null || true
  wait "$watcher" 2>/dev/null || true
  if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
  if [[ $status -ne 0 ]]; then
    tail -n "${SKYTRAIN_LOG_TAIL:-40}" "$log" | sed 's/^/  | /' >&2
    say "  the whole output is in $log"
  elif [[ $((SECONDS - began)) -ge 5 ]]; then
    say "  done in $((SECONDS - began)) s"
  fi
  return "$status"
}

# need_disk GIB PURPOSE
need_disk() {
  local free_kib
  free_kib=$(df --output=avail -k "$root" | tail -n 1)
  if ((free_kib < $1 * 1024 * 1024)); then
    fail 5 "$((free_kib / 1024)) MiB are free in $root, $2 needs $1 GiB" "free some space, or clone to a larger disk"
  fi
}

# Compile jobs: a unit that includes LibTorch takes up to 1.5 GiB.
compile_jobs() {
  local cores memory_kib jobs
  if [[ -n ${SKYTRAIN_JOBS:-} ]]; then
    [[ $SKYTRAIN_JOBS =~ ^[1-9][0-9]*$ ]] || fail 2 "SKYTRAIN_JOBS=$SKYTRAIN_JOBS is no positive number"
    printf '%s' "$SKYTRAIN_JOBS"
    return
  fi
  cores=$(nproc)
  memory_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  jobs=$((memory_kib / (1536 * 1024)))
  if ((jobs > cores)); then jobs=$cores; fi
  if ((jobs < 1)); then jobs=1; fi
  printf '%s' "$jobs"
}

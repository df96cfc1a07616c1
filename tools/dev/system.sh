# shellcheck shell=bash
# System packages. Everything that apt installs is listed here and nowhere else.

packages_build=(
  g++ cmake ninja-build ccache mold pkg-config git ca-certificates python3 python3-pip unzip
  libspdlog-dev libfmt-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libxxhash-dev libdeflate-dev zlib1g-dev libzstd-dev
  libpng-dev libjpeg-dev libhwloc-dev libssl-dev libprotozero-dev libjs-chart.js libgtest-dev libgmock-dev
)
packages_test=(python3-pytest)
packages_style=(clang-format clang-tidy shellcheck git)
packages_judges=(python3-venv chromium fonts-dejavu-core)
packages_package=(zstd binutils)  # binutils: strip
packages_bare=(debootstrap)
packages_fuzz=(clang libclang-rt-dev)

# Names of a list that are not installed.
missing_packages() {
  local installed package
  installed=$(dpkg-query -W -f '${binary:Package} ${db:Status-Status}\n' "$@" 2>/dev/null |
    awk '$2 == "installed" {sub(/:.*/, "", $1); print $1}' || true)
  for package in "$@"; do
    grep -qxF "$package" <<<"$installed" || printf '%s\n' "$package"
  done
}

# os_field NAME: ID, VERSION_ID, VERSION_CODENAME of this system.
os_field() { sed -n "s/^$1=//p" /etc/os-release 2>/dev/null | tr -d '"'; }

check_system() {
  local id version machine
  machine=$(uname -sm)
  if [[ $machine != "Linux x86_64" ]]; then
    fail 5 "this is $machine; SkyTrain builds on Linux x86_64" "use such a machine or a container of debian:12"
  fi
  id=$(os_field ID)
  version=$(os_field VERSION_ID)
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    fail 5 "this system (${id:-unknown}) has no apt, so packages can't be installed here" \
      "use debian:12, or install the equivalents of: ${packages_build[*]}"
  fi
  if [[ $id != debian || $version != 12 ]]; then
    warn "tested on Debian 12; this is ${id:-unknown} ${version:-}: going on with the same package names"
  fi
}

# Options for apt that make it use SKYTRAIN_APT_MIRROR without touching the system's own sources.
apt_sources() {
  [[ -n ${SKYTRAIN_APT_MIRROR:-} ]] || return 0
  local components=main
  if [[ $(os_field ID) == ubuntu ]]; then components="main universe"; fi
  mkdir -p build/apt
  printf 'deb %s %s %s\n' "$SKYTRAIN_APT_MIRROR" "$(os_field VERSION_CODENAME)" "$components" >build/apt/sources.list
  printf '%s\n' -o "Dir::Etc::sourcelist=$root/build/apt/sources.list" -o Dir::Etc::sourceparts=-
}

# install_packages NAME...: with apt, only what is missing; offline and fast when nothing is.
install_packages() {
  local missing options
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} -gt 0 ]] || return 0
  check_system
  if [[ $EUID -ne 0 ]]; then
    fail 5 "${#missing[@]} packages are missing and this user can't install them; run this, then ./dev again:" \
      "sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}"
  fi
  mapfile -t options < <(apt_sources)
  options+=(-o Acquire::Retries=3 -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
  if ! run_logged apt-update "refreshing the package lists" \
    apt-get "${options[@]}" -o APT::Update::Error-Mode=any -q update; then
    warn "the package lists could not be refreshed; trying with those that are here"
  fi
  if ! DEBIAN_FRONTEND=noninteractive run_logged apt-install "installing ${#missing[@]} packages" \
    apt-get "${options[@]}" -q -y --no-install-recommends install "${missing[@]}"; then
    if grep -qiE 'Temporary failure|Could not resolve|Could not connect|Failed to fetch|Unable to locate' \
      build/log/apt-update.log build/log/apt-install.log; then
      fail 5 "packages could not be fetched: no network, or no mirror that answers" \
        "check the connection; behind a proxy set http_proxy; SKYTRAIN_APT_MIRROR=URL takes another mirror"
    fi
    fail 5 "apt could not install: ${missing[*]}" "see build/log/apt-install.log"
  fi
}

# shellcheck shell=bash
# ./dev soak checkpoint [KILLS]: kills a training run at random moments, 2,000 times unless told otherwise, and compares what
# comes out with uninterrupted runs: no step lost, none done twice, the same weights bit for bit.
set -euo pipefail
cd "$(dirname "$0")/../.."
export SKYTRAIN_BIN=$PWD/build/release/bin/skytrain SKYTRAIN_TEST_KILLS=${1:-2000}
exec /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/e2e/test_resume.py -k kill_at_random_moments

# shellcheck shell=bash
# A bundle that runs on any x86_64 Linux of the last ten years: our programs, the libraries they need, and the loader and C
# library of the machine that built it.
package() { fail 1 "package"; }

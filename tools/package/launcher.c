// The first thing that runs in a bundle: bin/skytrain and libexec/skytrain-worker are copies of this program.
//
// It is linked statically, so it starts on any Linux, and runs the real program of its own name with the loader and the
// libraries of the bundle, whatever C library the host has:
//
//   <bundle>/lib/ld-linux-x86-64.so.2 --library-path <bundle>/lib <bundle>/lib/programs/<name> ARGUMENTS...
//
// The loader then is /proc/self/exe, so the program finds ../libexec beside <bundle>/lib as it does beside bin.
// LD_LIBRARY_PATH is not touched: programs started from there see the host's libraries.

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kEnvironmentError = 5 };  // skytrain's exit code for a broken installation

static char* joined(const char* folder, const char* name) {
  const size_t size = strlen(folder) + strlen(name) + 2;
  char* path = malloc(size);
  if (path == NULL) exit(kEnvironmentError);
  snprintf(path, size, "%s/%s", folder, name);
  return path;
}

int main(int argc, char** argv) {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) {
    fputs("skytrain: can't find its own folder: is /proc mounted?\n", stderr);
    return kEnvironmentError;
  }
  self[length] = '\0';
  char* const name = basename(strdup(self));
  char* const bundle = dirname(dirname(strdup(self)));
  char* const lib = joined(bundle, "lib");
  char* const loader = joined(lib, "ld-linux-x86-64.so.2");
  char* const program = joined(joined(lib, "programs"), name);

  char** arguments = calloc((size_t)argc + 7, sizeof *arguments);
  if (arguments == NULL) return kEnvironmentError;
  int n = 0;
  arguments[n++] = loader;
  arguments[n++] = "--library-path";
  arguments[n++] = lib;
  arguments[n++] = "--argv0";
  arguments[n++] = argc > 0 ? argv[0] : name;
  arguments[n++] = program;
  for (int i = 1; i < argc; ++i) arguments[n++] = argv[i];
  execv(loader, arguments);
  fprintf(stderr, "skytrain: can't start %s: the bundle is incomplete; unpack it again\n", loader);
  return kEnvironmentError;
}

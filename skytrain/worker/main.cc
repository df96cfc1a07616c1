// skytrain-worker: the program that holds tensors. Started by skytrain, which gives it its orders over a socket.

#include <cstdio>

#include "skytrain/worker/worker.h"

int main(int argc, char** argv) {
  if (argc > 1) {
    std::fprintf(stderr, "skytrain-worker is started by skytrain (got \"%s\"); see skytrain --help\n", argv[1]);
    return 2;
  }
  return skytrain::worker::serve();
}

// Writes small pictures of all kinds into a folder: where fuzz_picture begins.

#include <fstream>

#include "skytrain/image/odd_pictures_test_data.h"

int main(int count, char** words) {
  if (count != 2) return 2;
  for (const auto& [name, file] : skytrain::image::odd_pictures()) {
    if (!(std::ofstream(std::string(words[1]) + "/" + name, std::ios::binary) << file).flush()) return 1;
  }
  return 0;
}

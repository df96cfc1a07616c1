// weights_convert IN OUT: reads any weights file, writes .pt or .safetensors, as OUT's name ends. One line of JSON on
// stdout says what was read. Errors go to stderr, with the exit code of their kind. For judges.

#include <cstdio>
#include <string>

#include "skytrain/base/error.h"
#include "skytrain/base/json.h"
#include "skytrain/weights/weights.h"

namespace skytrain {
namespace {

void convert(FileSystem& fs, const std::string& in, const std::string& out) {
  const weights::Weights weights = weights::read_weights(fs, in);
  const auto file = fs.open_write(out, FileSystem::Mode::kTruncate);
  if (out.ends_with(".pt")) {
    weights::write_pt(*file, weights.arrays);
  } else if (out.ends_with(".safetensors")) {
    checkpoint::write_safetensors(*file, weights.arrays, {{"format", "pt"}});
  } else {
    throw Error(ErrorKind::kUsage, out, "the output's name must end in .pt or .safetensors");
  }
  file->close();
  OrderedJson said = {{"format", weights::format_name(weights.format)},
                      {"arrays", weights.arrays.size()},
                      {"note", weights.note},
                      {"ignored", weights.ignored}};
  std::puts(said.dump().c_str());
}

}  // namespace
}  // namespace skytrain

int main(int argc, char** argv) {
  try {
    if (argc != 3) throw skytrain::Error(skytrain::ErrorKind::kUsage, "", "usage: weights_convert IN OUT");
    skytrain::convert(skytrain::FileSystem::real(), argv[1], argv[2]);
    return 0;
  } catch (const skytrain::Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return skytrain::exit_code(error.kind());
  }
}

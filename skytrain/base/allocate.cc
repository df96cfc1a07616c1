#include "skytrain/base/allocate.h"

#include <new>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain {

std::unique_ptr<uint8_t[]> allocate_bytes(size_t size, const std::string& where) {
  std::unique_ptr<uint8_t[]> block(new (std::nothrow) uint8_t[size]);
  if (!block) {
    throw Error(ErrorKind::kEnvironment, where, str("needs ", human_bytes(static_cast<double>(size)), " of memory"),
                "use a machine with more memory, or a smaller data set");
  }
  return block;
}

}  // namespace skytrain

#include "skytrain/cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "skytrain/base/console.h"
#include "skytrain/base/text.h"

namespace skytrain::cli {

void open_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
      // The lowest free number is given: this one, as those below are open by now.
      [[maybe_unused]] const int opened = ::open("/dev/null", O_RDWR);
    }
  }
}

void print_result(std::string_view text) {
  std::string out(text);
  if (out.empty() || out.back() != '\n') out += '\n';
  size_t written = 0;
  while (written < out.size()) {
    const ssize_t n = ::write(STDOUT_FILENO, out.data() + written, out.size() - written);
    if (n >= 0) {
      written += static_cast<size_t>(n);
    } else if (errno == EPIPE || errno == EBADF) {
      return;
    } else if (errno != EINTR) {
      throw errno_error("stdout", "cannot write", errno);
    }
  }
}

void print_json(const OrderedJson& json) {
  print_result(json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
}

OrderedJson error_json(const Error& error) {
  return {{"kind", error_kind_name(error.kind())},
          {"where", error.where()},
          {"what", error.problem()},
          {"hint", error.hint()},
          {"exit_code", exit_code(error.kind())}};
}

int report_error(const Error& error) {
  console::print_line(STDERR_FILENO, "skytrain: " + error.message());
  return exit_code(error.kind());
}

int report_error_json(const Error& error) {
  print_json({{"status", "failed"}, {"error", error_json(error)}});
  return report_error(error);
}

Error as_error(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const Error*>(&exception)) return *error;
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) {
    return Error(ErrorKind::kEnvironment, "", "out of memory", "end other programs, or use a larger machine");
  }
  if (const auto* error = dynamic_cast<const std::system_error*>(&exception)) {  // such as: no current folder
    return Error(ErrorKind::kEnvironment, "", error->what());
  }
  return Error(ErrorKind::kInternal, "", str("a bug in skytrain: ", exception.what()),
               "please report it together with the command line");
}

std::string TwoColumns::text() const {
  size_t width = 0;
  for (const auto& [name, value] : rows_) width = std::max(width, name.size());
  std::string out;
  for (const auto& [name, value] : rows_) {
    out += "  " + name + std::string(width - name.size() + 2, ' ') + value + "\n";
  }
  if (!out.empty()) out.pop_back();
  return out;
}

}  // namespace skytrain::cli

// skytrain/cli/output.h
//
// What goes where: results (a verb's own output, --json) to stdout, text for people about what happens to stderr.
// Not thread-safe: one thread prints.

#pragma once
#include <string>
#include <string_view>

#include "skytrain/base/error.h"
#include "skytrain/base/json.h"

namespace skytrain::cli {

// Opens /dev/null for each of stdin, stdout and stderr that is closed: else the next file opened would get that number,
// and results would be written into it. Call first.
void open_standard_descriptors();

// To stdout, with a newline at the end. A reader who has gone (`| head`) is no error; a full disk is: kEnvironment.
void print_result(std::string_view text);
void print_json(const OrderedJson& json);  // on one line

// {"kind", "where", "what", "hint", "exit_code"}
OrderedJson error_json(const Error& error);

// "skytrain: <message>" to stderr. Returns the exit code.
int report_error(const Error& error);
// The same, and to stdout the line {"status": "failed", "error": …}.
int report_error_json(const Error& error);

// What an exception is to the user: an Error as it is, lack of memory, else a bug of ours.
Error as_error(const std::exception& exception);

// Two columns, aligned, for people: "  run    runs/mnist/…".
class TwoColumns {
 public:
  void row(std::string name, std::string value) { rows_.emplace_back(std::move(name), std::move(value)); }
  std::string text() const;

 private:
  std::vector<std::pair<std::string, std::string>> rows_;
};

}  // namespace skytrain::cli

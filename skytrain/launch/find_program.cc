#include "skytrain/launch/find_program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::launch {
namespace {

// "" when it can be run.
std::string problem_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? "there is no such program" : std::strerror(errno);
  }
  if (S_ISDIR(info.st_mode)) return "is a folder, not a program";
  if (!S_ISREG(info.st_mode)) return "is not a program";
  return ::access(path.c_str(), X_OK) == 0 ? "" : "is not executable";
}

bool is_python(const std::string& name) { return name.size() > 3 && name.rfind(".py") == name.size() - 3; }

std::string advice(const std::string& name) {
  if (is_python(name)) return "a Python script is run by Python: -- python3 " + name;
  return name.find('/') == std::string::npos ? "it is looked for in PATH; one of this folder is ./" + name : "";
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.empty()) throw Error(ErrorKind::kEnvironment, "\"\"", "is no program's name");
  if (name.find('/') != std::string::npos) {
    const std::string problem = problem_of(name);
    if (problem.empty()) return name;
    throw Error(ErrorKind::kEnvironment, name, problem,
                is_python(name)                  ? advice(name)
                : problem == "is not executable" ? "chmod +x makes it so"
                                                 : "");
  }
  const char* const variable = std::getenv("PATH");
  const std::string path = variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : variable;
  std::string unusable;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    const std::string problem = problem_of(candidate);
    if (problem.empty()) return candidate;
    if (problem == "is not executable" && unusable.empty()) unusable = candidate;
    begin = end + 1;
  }
  if (!unusable.empty()) throw Error(ErrorKind::kEnvironment, unusable, "is not executable", advice(name));
  throw Error(ErrorKind::kEnvironment, name, "there is no such program", advice(name));
}

}  // namespace skytrain::launch

// skytrain/recipe/reader.h
//
// What is collected while a tree of values is typed: all problems, with the place and key path of each, and the origin
// of every value.

#pragma once
#include <map>
#include <string>
#include <vector>

#include "skytrain/recipe/resolve.h"
#include "skytrain/recipe/value.h"

namespace skytrain::recipe {

class Reader {
 public:
  // sources must outlive the reader.
  explicit Reader(const Sources& sources) : sources_(sources) {}

  // Adds `part` ("batch", "[0]") to the key path while it lives.
  class Scope {
   public:
    Scope(Reader& reader, std::string_view part);
    ~Scope() { reader_.path_.resize(length_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Reader& reader_;
    size_t length_;
  };

  const std::string& path() const { return path_; }
  const Sources& sources() const { return sources_; }

  // Something wrong with the value at `place`, which is at the current path.
  void problem(const Place& place, const std::string& what, const std::string& hint = {});
  size_t problems() const { return problems_.size(); }
  // Throws the first problem in the order of the file, if there is one; its hint counts the others.
  void throw_problems();

  // The value at the current path came from `place`; kNowhere: it is the default.
  void record_origin(const Place& place);
  std::map<std::string, Origin> take_origins() { return std::move(origins_); }

 private:
  struct Problem {
    Place place;
    std::string where, what, hint;
  };

  const Sources& sources_;
  std::string path_;
  std::vector<Problem> problems_;
  std::map<std::string, Origin> origins_;
};

}  // namespace skytrain::recipe

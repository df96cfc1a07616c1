// Pickles that lie, attack or are damaged.

#include "skytrain/weights/unpickler.h"

#include "skytrain/weights/weights_test_data.h"

namespace skytrain::weights {
namespace {

using namespace testing_data;          // NOLINT(google-build-using-namespace)
using namespace pickle;                // NOLINT(google-build-using-namespace)
using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string repeat(std::string_view piece, size_t times) {
  std::string out;
  out.reserve(piece.size() * times);
  for (size_t i = 0; i < times; ++i) out += piece;
  return out;
}

std::string le(uint64_t value, size_t bytes) {
  std::string out;
  append_le<uint64_t>(out, value);
  return out.substr(0, bytes);
}

TEST(Unpickler, GoodOneIsRead) {
  const Weights weights = read(pt(dict({{"w", floats()}})));
  ASSERT_EQ(weights.arrays.size(), 1u);
  EXPECT_EQ(weights.arrays[0].name, "w");
  EXPECT_EQ(weights.arrays[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(as_text(weights.arrays[0].bytes), kSixFloats);
}

TEST(Unpickler, ForeignNamesAreRefusedByName) {
  const std::pair<std::string, std::string> names[] = {
      {"os", "system"},
      {"posix", "system"},
      {"nt", "system"},
      {"builtins", "eval"},
      {"__builtin__", "eval"},
      {"builtins", "exec"},
      {"builtins", "getattr"},
      {"subprocess", "Popen"},
      {"torch.storage", "_load_from_bytes"},
      {"torch.serialization", "load"},
      {"numpy.core.multiarray", "scalar"},
      {"numpy.core.multiarray", "_reconstruct"},
      {"copy_reg", "_reconstructor"},
      {"argparse", "Namespace"},
      {"torch", "FloatStorage "},
      {"torch", ""},
      {"", ""},
  };
  for (const auto& [module, name] : names) {
    const std::string words = str("refers to ", module, ".", name, ", which a weights file has no use for: refused");
    // Called, only named, hidden behind the weights, and by the opcode of protocol 4.
    EXPECT_EQ(refusal(pt(call(global(module, name), {text("echo pwned")}))), words);
    EXPECT_EQ(refusal(pt(global(module, name))), words);
    EXPECT_EQ(refusal(pt(dict({{"w", floats()}, {"x", global(module, name)}}))), words);
    EXPECT_EQ(refusal(pt(text(module) + text(name) + "\x93")), words);
    EXPECT_EQ(refusal(legacy(global(module, name), "")), words);
    EXPECT_EQ(refusal(pickle::whole(global(module, name))), words);
  }
}

TEST(Unpickler, ControlCharactersInNamesAreEscaped) {
  EXPECT_THAT(refusal(pt(global("o\x1b[2Js", "sys\ttem"))), HasSubstr("refers to o\\x1B[2Js.sys\\x09tem"));
  EXPECT_THAT(refusal(pt("c" + std::string(10'000, 'm') + "\nx\n")), HasSubstr("a name without an end"));
  EXPECT_THAT(refusal(pt("cos")), HasSubstr("a name without an end"));
}

TEST(Unpickler, AllowedNamesDoOnlyWhatTheyAreFor) {
  const std::string storage_type = global("torch", "FloatStorage");
  EXPECT_THAT(refusal(pt(call(storage_type, {number(1 << 30)}))), HasSubstr("a call of torch.FloatStorage"));
  EXPECT_THAT(refusal(pt(call(global("torch", "float32"), {}))), HasSubstr("a call of torch.float32"));
  EXPECT_THAT(refusal(pt(call(number(3), {}))), HasSubstr("a call of a number"));
  EXPECT_THAT(refusal(pt(global("collections", "OrderedDict") + "NR")), HasSubstr("arguments that do not fit"));
  EXPECT_THAT(refusal(pt(call(global("torch", "Size"), {number(3)}))), HasSubstr("arguments that do not fit"));
  EXPECT_THAT(refusal(pt(call(global("torch._utils", "_rebuild_parameter"), {number(3)}))),
              HasSubstr("a call of torch._utils._rebuild_parameter with arguments that do not fit"));
  EXPECT_THAT(refusal(pt(call(global("collections", "OrderedDict"), {list({number(1)})}))),
              HasSubstr("an OrderedDict of something that is no list of pairs"));
  EXPECT_THAT(refusal(pt(global("torch._utils", "_rebuild_tensor_v2") + ")\x81")), HasSubstr("a new object of a name"));
  EXPECT_THAT(refusal(pt("K\1)\x81")), HasSubstr("a new object of a number"));
  EXPECT_THAT(refusal(pt("]}b")), HasSubstr("a state for a list"));
  EXPECT_THAT(refusal(pt("}}b")), HasSubstr("a state for a dict"));
  EXPECT_THAT(refusal(pt(ordered_dict() + "K\1b")), HasSubstr("an OrderedDict with a number as state"));
  EXPECT_THAT(refusal(pt(global("torch.nn.parameter", "Parameter") + ")\x81)b")),
              HasSubstr("a Parameter with a state that does not fit"));
  EXPECT_THAT(refusal(pt(global("torch.nn.parameter", "Parameter") + ")\x81" + tuple({"N", "N", "N", "N", "N"}) + "b")),
              HasSubstr("a Parameter with a state that does not fit"));
  EXPECT_THAT(refusal(pt(dict({{"w", global("torch.nn.parameter", "Parameter") + ")\x81"}}))),
              HasSubstr("tensor \"w\" is a Parameter without data"));
}

TEST(Unpickler, PersistentIdsOfAnotherShapeAreRefused) {
  const std::string type = global("torch", "FloatStorage");
  const auto id = [&](const std::vector<std::string>& parts) { return refusal(pt(tuple(parts) + "Q")); };
  EXPECT_THAT(refusal(pt("K\7Q")), HasSubstr("a persistent id that is no tuple"));
  EXPECT_THAT(refusal(pt(")Q")), HasSubstr("that does not begin with a word"));
  EXPECT_THAT(id({text("module"), type, text("x.py"), text("import os")}), HasSubstr("something that is no storage"));
  EXPECT_THAT(id({text("storage"), type, text("0")}), HasSubstr("not 5 or 6 parts"));
  EXPECT_THAT(id({text("storage"), text("torch.FloatStorage"), text("0"), text("cpu"), number(6)}),
              HasSubstr("whose type is no storage"));
  EXPECT_THAT(id({text("storage"), global("torch", "Size"), text("0"), text("cpu"), number(6)}),
              HasSubstr("whose type is no storage"));
  EXPECT_THAT(id({text("storage"), type, number(0), text("cpu"), number(6)}), HasSubstr("whose key is no string"));
  EXPECT_THAT(id({text("storage"), type, text("0"), "N", number(6)}), HasSubstr("whose device is no string"));
  EXPECT_THAT(id({text("storage"), type, text("0"), text("cpu"), text("6")}), HasSubstr("whose size is no number"));
  EXPECT_THAT(id({text("storage"), type, text("0"), text("cpu"), number(-6)}), HasSubstr("whose size is negative"));
  EXPECT_THAT(id({text("storage"), type, text("0"), text("cpu"), number(6), number(1)}),
              HasSubstr("whose view is none"));
}

TEST(Unpickler, TensorsOfAnotherShapeAreRefused) {
  const std::string v2 = global("torch._utils", "_rebuild_tensor_v2"),
                    v3 = global("torch._utils", "_rebuild_tensor_v3");
  const std::string six = storage("FloatStorage", "0", 6), size = numbers({6}), stride = numbers({1}), no = "\x89";
  EXPECT_THAT(refusal(pt(call(v2, {six, number(0), size, stride}))), HasSubstr("another number of parts"));
  EXPECT_THAT(refusal(pt(call(v2, {}))), HasSubstr("another number of parts"));
  EXPECT_THAT(refusal(pt(call(v2, {"N", number(0), size, stride, no, "}"}))), HasSubstr("whose storage is none"));
  EXPECT_THAT(refusal(pt(call(v2, {six, "N", size, stride, no, "}"}))), HasSubstr("whose offset is no number"));
  EXPECT_THAT(refusal(pt(call(v2, {six, number(0), list({number(6)}), stride, no, "}"}))),
              HasSubstr("whose size is no tuple"));
  EXPECT_THAT(refusal(pt(call(v2, {six, number(0), size, "N", no, "}"}))), HasSubstr("whose stride is no tuple"));
  EXPECT_THAT(refusal(pt(call(v2, {six, number(0), size, stride, no, "}", dict({{"conj", "\x88"}})}))),
              HasSubstr("a conjugate or negated view"));
  EXPECT_THAT(refusal(pt(call(v3, {six, number(0), size, stride, no, "}", number(1)}))),
              HasSubstr("whose dtype is none"));
  EXPECT_THAT(refusal(pt(call(v3, {six, number(0), size, stride, no, "}", global("torch", "uint16")}))),
              HasSubstr("dtype torch.uint16"));
  const std::string untyped =
      tuple({text("storage"), global("torch.storage", "UntypedStorage"), text("0"), text("cpu"), number(24)}) + "Q";
  EXPECT_THAT(refusal(pt(tensor(untyped, 0, {6}, {1}))), HasSubstr("a tensor without a dtype"));
}

TEST(Unpickler, DamagedOnesAreRefusedWithThePlace) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "ends with 0 values instead of one"},
      {"NN", "ends with 2 values instead of one"},
      {"N(", "ends with 1 values instead of one"},
      {"(t(", "ends with"},
      {"t", "there is no mark"},
      {"e", "there is no mark"},
      {"1", "there is no mark"},
      {"0", "the stack is empty"},
      {"2", "the stack is empty"},
      {"Na", "the stack is empty"},
      {"(Na", "the stack is empty"},
      {"NNs", "the stack is empty"},
      {"N\x87", "the stack is empty"},
      {"(\x85", "the stack is empty"},
      {"R", "the stack is empty"},
      {"N(R", "the stack is empty"},
      {"Q", "the stack is empty"},
      {"b", "the stack is empty"},
      {"q\1", "the stack is empty"},
      {"(e", "the stack is empty"},
      {"NNa", "None is filled as if it were a list"},
      {"}Na", "a dict is filled as if it were a list"},
      {"]NNs", "a list is filled as if it were a dict"},
      {")(NNu", "a tuple is filled as if it were a dict"},
      {"N(\x90", "filled as if it were a set"},
      {"}(Nu", "a key without a value"},
      {"(Nd", "a key without a value"},
      {"h\3", "nothing is memoized as 3"},
      {"j\xff\xff\xff\xff", "nothing is memoized as 4294967295"},
      {"Nr\xff\xff\xff\xff", "a memo number of 4294967295"},
      {"K\1K\2\x93", "a name that is no string"},
      {"I1\n", "opcode 0x49"},
      {"\x82\1", "opcode 0x82"},
      {"(X\4\0\0\0evalX\1\0\0\0xi"s, "opcode 0x69"},
      {"\x97", "opcode 0x97"},
      {"\x80\1", "protocol 1"},
      {"\x80\x06", "protocol 6"},
      {"\x8b\xff\xff\xff\xff", "a number of -1 bytes"},
  };
  for (const auto& [body, words] : cases) {
    SCOPED_TRACE(words);
    EXPECT_THAT(refusal(pt(body)),
                AllOf(HasSubstr("has a damaged pickle: "), HasSubstr(words), HasSubstr(" at byte ")));
  }
}

TEST(Unpickler, LengthsBeyondTheFileAreRefusedUnread) {
  const std::string pieces[] = {
      "X" + le(0xFFFFFFFF, 4),
      "T" + le(0x80000000, 4),
      "B" + le(0x7FFFFFFF, 4),
      "\x8d" + le(uint64_t{1} << 60, 8),
      "\x8e" + le(~uint64_t{0}, 8),
      "\x96" + le(uint64_t{1} << 40, 8),
      "\x8b" + le(0x7FFFFFFF, 4),
      "\x8a\xff",
      "U\xff",
      "C\xff",
      "\x8c\xff",
      "G1",
      "J1",
      "M1",
      "K",
      "r1",
      "\x95" + le(uint64_t{1} << 62, 8),
      "\x95\1",
  };
  for (const std::string& piece : pieces) {
    const std::string pickle = "\x80\x02" + piece;
    EXPECT_THAT(refusal(zip_of({{"x/data.pkl", pickle}})), HasSubstr("ends in the middle of its pickle")) << piece[0];
  }
}

TEST(Unpickler, BombsTakeNoMoreThanTheirSize) {
  constexpr size_t kMany = 200'000;
  // Deep nesting: by marks, on the stack, and inside each other.
  EXPECT_THAT(refusal(pt(repeat("(", kMany))), HasSubstr("nests deeper than 1000 levels"));
  EXPECT_THAT(refusal(pt(repeat("]", kMany))), HasSubstr("16 times its own size"));
  EXPECT_THAT(refusal(pt(repeat("}", kMany))), HasSubstr("16 times its own size"));
  EXPECT_THAT(refusal(pt(")" + repeat("\x85", kMany))), HasSubstr("16 times its own size"));
  EXPECT_THAT(refusal(pt(repeat("N", 2'000'000) + repeat("0", 2'000'000))), HasSubstr("values wait on the stack"));
  EXPECT_THAT(refusal(pt("N" + repeat("2", 2'000'000))), HasSubstr("values wait on the stack"));
  // Billion laughs: each list holds the one before ten times.
  std::string laughs = "]q\x01";
  for (char level = 1; level < 100; ++level) {
    laughs += "0](" + repeat(std::string("h") + level, 10) + "eq" + static_cast<char>(level + 1);
  }
  EXPECT_THAT(refusal(pt(laughs)), HasSubstr("holds a list, not a dict"));
  // A memo that is filled, and one with holes.
  EXPECT_THAT(refusal(pt("N" + repeat("\x94", kMany))), HasSubstr("holds None"));
  std::string sparse = "N";
  for (uint32_t i = 0; i < 20'000; ++i) sparse += "r" + le(uint64_t{i} * 5, 4);
  EXPECT_THAT(refusal(pt(sparse)), HasSubstr("holds None"));
  // Copies of a long list.
  std::string copies = "](" + repeat("](NNe", 1000) + "eq\1";
  for (int i = 0; i < 2000; ++i) copies += global("collections", "OrderedDict") + "h\1\x85R0";
  EXPECT_THAT(refusal(pt(copies)), HasSubstr("16 times its own size"));
}

TEST(Unpickler, CyclesNeitherLeakNorRecurse) {
  EXPECT_THAT(refusal(pt("]q\1h\1a")), HasSubstr("holds a list"));
  const auto cyclic = [](std::string_view key) { return "}q\1" + text(key) + "h\1s"; };
  EXPECT_THAT(refusal(pt(cyclic("self"))), HasSubstr("holds no tensors under names"));
  EXPECT_THAT(refusal(pt(cyclic("model"))), HasSubstr("wraps its weights in more than 4 dicts"));
  EXPECT_THAT(refusal(pt("}q\1" + text("model") + "}q\2s" + text("x") + "h\1s")), HasSubstr("holds no tensors"));
  // A dict that holds itself beside tensors is still one.
  EXPECT_EQ(read(pt(cyclic("self") + text("w") + floats() + "s")).ignored, 1u);
  // A size that holds itself.
  EXPECT_THAT(
      refusal(pt(dict(
          {{"w", call(global("torch._utils", "_rebuild_tensor_v2"),
                      {storage("FloatStorage", "0", 6), number(0), "]q\1h\1a\x85", numbers({1}), "\x89", "}"})}}))),
      HasSubstr("tensor \"w\" has a shape that is no number"));
  // Many dicts that all hold the same many dicts.
  std::string wide = "}(";
  for (int i = 0; i < 2000; ++i) wide += text(str(i)) + "K\1";
  wide +=
      "uq\1"
      "0}(";
  for (int i = 0; i < 2000; ++i) wide += text(str(i)) + "h\1";
  EXPECT_THAT(refusal(pt(wide + "u")), HasSubstr("holds no tensors under names, but 2000 other entries"));
}

TEST(Unpickler, EveryOpcodeOfTheFormatIsKnown) {
  // What no file of torch.save has in one place; numbers in strings are lengths of 1, 4 or 8 bytes.
  const std::vector<std::string> pieces = {
      "N0",                // POP of a value
      "(0(NN1",            // POP of a mark, POP_MARK
      "}2q\1" + "00h\1"s,  // DUP, BINPUT, BINGET
      text("list") + "(K\1M\1\2J\1\2\3\4ls",
      text("dict") + "(" + text("k") + "\x88" + "ds",
      text("sets") + "(\x8f(NN\x90(NN\x91ts",
      text("texts") + "(U\1aT\1\0\0\0bX\1\0\0\0c\x8c\1d\x8d"s + le(1, 8) + "ets",
      text("bytes") + "(B\1\0\0\0aC\1b\x8e"s + le(1, 8) + "c\x96" + le(1, 8) + "dts",
      text("longs") + "(\x8a\0\x8a\1\xff\x8a\x09"s + "123456789" + "\x8b\2\0\0\0"s + "zzts",
      text("float") + "G12345678s",
      text("memo") + "(N\x94h\1Nr\x09\0\0\0j\x09\0\0\0ts"s,
      text("w") + floats() + "s",
  };
  const Weights weights = read(pt("\x95" + le(3, 8) + join(pieces, "")));
  ASSERT_EQ(weights.arrays.size(), 1u);
  EXPECT_EQ(weights.ignored, 8u);
}

}  // namespace
}  // namespace skytrain::weights

# Run as a script by skytrain_embed: writes the .cc that holds one file.
file(SHA256 ${INPUT} hash)

# Hex to base64, three bytes (six digits) at a time; 32 bytes leave two, hence one '='.
set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
set(base64 "")
foreach(at RANGE 0 60 6)
  string(SUBSTRING ${hash} ${at} 6 digits)
  string(LENGTH ${digits} length)
  string(SUBSTRING "${digits}00" 0 6 digits)
  math(EXPR value "0x${digits}")
  foreach(shift 18 12 6 0)
    math(EXPR index "(${value} >> ${shift}) & 63")
    string(SUBSTRING ${alphabet} ${index} 1 letter)
    string(APPEND base64 ${letter})
  endforeach()
endforeach()
string(SUBSTRING ${base64} 0 43 base64)

string(REPLACE "::" "_" symbol "${NAMESPACE}_${NAME}")
file(WRITE ${OUTPUT} "// Made from ${INPUT}
#include <string_view>

asm(\".section .rodata\\n\"
    \".global ${symbol}_begin\\n${symbol}_begin:\\n\"
    \".incbin \\\"${INPUT}\\\"\\n\"
    \".global ${symbol}_end\\n${symbol}_end:\\n\"
    \".byte 0\\n\"
    \".previous\\n\");
extern \"C\" const char ${symbol}_begin[];
extern \"C\" const char ${symbol}_end[];

namespace ${NAMESPACE} {
std::string_view ${NAME}();
std::string_view ${NAME}_sha256();
std::string_view ${NAME}() { return {${symbol}_begin, static_cast<size_t>(${symbol}_end - ${symbol}_begin)}; }
std::string_view ${NAME}_sha256() { return \"${base64}=\"; }
}  // namespace ${NAMESPACE}
")

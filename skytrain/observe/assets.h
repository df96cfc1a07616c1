// skytrain/observe/assets.h
//
// The files that a report carries, as they were when the program was built (assets.cmake). The hashes are the base64 of
// SHA-256, for Content-Security-Policy.

#pragma once
#include <string_view>

namespace skytrain::observe::assets {

std::string_view chart_js();
std::string_view chart_js_sha256();
std::string_view chart_js_licence();
std::string_view report_css();
std::string_view report_css_sha256();
std::string_view report_js();
std::string_view report_js_sha256();

}  // namespace skytrain::observe::assets

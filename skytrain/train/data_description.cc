#include "skytrain/train/data_description.h"

#include "skytrain/base/error.h"

namespace skytrain::train {

Json describe_data(const data::DatasetInfo& info) {
  return {{"channels", info.channels},
          {"height", info.height},
          {"width", info.width},
          {"classes", info.classes},
          {"values", info.values},
          {"class_names", info.class_names},
          {"feature_names", info.feature_names}};
}

data::DatasetInfo described_data(const Json& json, const std::string& where) {
  try {
    data::DatasetInfo info;
    info.channels = json.at("channels");
    info.height = json.at("height");
    info.width = json.at("width");
    info.classes = json.at("classes");
    info.values = json.at("values");
    info.class_names = json.at("class_names");
    info.feature_names = json.at("feature_names");
    return info;
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::kData, where, std::string("description of the data: ") + error.what());
  }
}

}  // namespace skytrain::train

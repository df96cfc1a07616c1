// A plug-in that was linked without what it needs.

#include "skytrain/model/plugin.h"

int a_function_of_another_library();

const int skytrain_unlinked = a_function_of_another_library();

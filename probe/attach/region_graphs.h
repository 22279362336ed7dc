/// The graphs that torch.compile compiled in this process, for the files of steps that ran them.
#pragma once

#include <cstdint>
#include <string>

#include "probe/record/record.h"

namespace nanquest::attach {

/// Stores the text of a graph (region_graph.py) under the number that its calls report. Any thread.
void keep_region_graph(std::int64_t number, std::string graph);

/// Adds the graphs of the recording's compiled regions to its data.
void add_region_graphs(Recording& recording);

}  // namespace nanquest::attach

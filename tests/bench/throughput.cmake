# Workers are no benchmarks by themselves, so they stand elsewhere than those.
if(TARGET nanquest::train)
  foreach(_worker IN ITEMS throughput_worker finetune_worker)
    nanquest_bench(${_worker} TORCH SOURCES "${CMAKE_CURRENT_LIST_DIR}/${_worker}.cpp" LINK nanquest::train)
    set_target_properties(${_worker} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/bench-workers")
  endforeach()
endif()

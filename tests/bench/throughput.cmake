# The worker is no benchmark by itself, so it stands elsewhere than those.
if(TARGET nanquest::train)
  nanquest_bench(throughput_worker TORCH SOURCES "${CMAKE_CURRENT_LIST_DIR}/throughput_worker.cpp" LINK nanquest::train)
  set_target_properties(throughput_worker PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/bench-workers")
endif()

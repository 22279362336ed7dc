if(TARGET nanquest::viewer_model)
  nanquest_bench(viewer_bench SOURCES "${CMAKE_CURRENT_LIST_DIR}/viewer_bench.cpp" LINK nanquest::viewer_model)
endif()

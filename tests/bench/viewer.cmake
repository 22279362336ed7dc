if(TARGET nanquest::viewer_model)
  nanquest_bench(viewer_bench SOURCES "${CMAKE_CURRENT_LIST_DIR}/viewer_bench.cpp" LINK nanquest::viewer_model)
endif()
if(TARGET nanquest_viewer_drawing AND TARGET viewer_fixture)
  nanquest_bench(viewer_speed SOURCES "${CMAKE_CURRENT_LIST_DIR}/viewer_speed.cpp"
    LINK nanquest::viewer_drawing viewer_fixture)
endif()

if(TARGET nanquest::train)
  nanquest_bench(trainer_bench TORCH SOURCES "${CMAKE_CURRENT_LIST_DIR}/trainer_bench.cpp" LINK nanquest::train)
endif()

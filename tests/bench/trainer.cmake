if(TARGET nanquest::trainer)
  nanquest_bench(trainer_bench TORCH SOURCES "${CMAKE_CURRENT_LIST_DIR}/trainer_bench.cpp" LINK nanquest::trainer)
endif()

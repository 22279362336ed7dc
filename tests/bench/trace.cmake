if(TARGET nanquest::record)
  nanquest_bench(trace_bench TORCH SOURCES trace_bench.cpp LINK nanquest::record)
endif()

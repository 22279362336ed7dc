if(TARGET nanquest::replay_trace)
  nanquest_bench(bench_replay TORCH SOURCES replay_verify.cpp LINK nanquest::replay_trace nanquest::record)
endif()

// nanquest-replay of the Python package: all of it is in the library that the package has anyway.
extern "C" int nanquest_replay(int argc, char** argv);

int main(int argc, char** argv) {
  return nanquest_replay(argc, argv);
}

// command.h -- what the main functions of mutation and soak share.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

namespace mutation {

// Reads the command line into the options of `app` and runs. An exception is said on stderr: status 2.
template <class Run>
int command(CLI::App& app, int argc, char** argv, Run run) {
  CLI11_PARSE(app, argc, argv);
  try {
    return run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), error.what());
    return 2;
  }
}

}  // namespace mutation

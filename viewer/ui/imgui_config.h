/// How Dear ImGui and ImPlot are compiled here; included by imgui.h in every unit (IMGUI_USER_CONFIG).
#pragma once

/// Called when Dear ImGui detects misuse. Counts and continues: the viewer must not end the session. Defined
/// in viewer/ui/hooks.cpp.
void nanquest_imgui_misuse(const char* expression, const char* file, int line);

#define IM_ASSERT(_EXPR)                                             \
  do {                                                               \
    if (!(_EXPR)) nanquest_imgui_misuse(#_EXPR, __FILE__, __LINE__); \
  } while (0)

// Plots of more than 64 Ki vertices.
#define ImDrawIdx unsigned int
// Every item reports its label and rectangle to the hooks in viewer/ui/hooks.cpp: this is how tests find
// buttons.
#define IMGUI_ENABLE_TEST_ENGINE
// The other eight numeric types cost a minute of compiling.
#define IMPLOT_CUSTOM_NUMERIC_TYPES (float)(double)

# nanquest_imgui: Dear ImGui and ImPlot out of NANQUEST_IMGUI_DIR and NANQUEST_IMPLOT_DIR, as one static library.
set(_imgui "${NANQUEST_IMGUI_DIR}")
set(_implot "${NANQUEST_IMPLOT_DIR}")
set(_sources
  "${_imgui}/imgui.cpp" "${_imgui}/imgui_draw.cpp" "${_imgui}/imgui_tables.cpp" "${_imgui}/imgui_widgets.cpp"
  "${_implot}/implot.cpp" "${_implot}/implot_items.cpp"
  "${PROJECT_SOURCE_DIR}/viewer/ui/hooks.cpp")  # what imgui.cpp calls when hooks are on
if(EXISTS "${_imgui}/imgui_stacklayout.cpp")
  list(APPEND _sources "${_imgui}/imgui_stacklayout.cpp")
endif()

# A scalable text face, embedded so that the program needs no file at run time. Without it Dear ImGui's own is used.
set(_font "${_imgui}/misc/fonts/Roboto-Medium.ttf")
set(_font_source "${CMAKE_CURRENT_BINARY_DIR}/embedded_font.cpp")
set(_font_bytes "0")
set(_font_size 0)
if(EXISTS "${_font}")
  file(READ "${_font}" _hex HEX)
  string(LENGTH "${_hex}" _digits)
  math(EXPR _font_size "${_digits} / 2")
  string(REGEX REPLACE "(................................)" "\\1\n" _hex "${_hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," _font_bytes "${_hex}")
endif()
file(CONFIGURE OUTPUT "${_font_source}" CONTENT
"extern const unsigned char nanquest_embedded_font[];
extern const unsigned int nanquest_embedded_font_size;
const unsigned char nanquest_embedded_font[] = {@_font_bytes@};
const unsigned int nanquest_embedded_font_size = @_font_size@;
" @ONLY)

# By itself, so that clang-tidy looks at it and not at all of Dear ImGui.
set_source_files_properties("${PROJECT_SOURCE_DIR}/viewer/ui/hooks.cpp" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
add_library(nanquest_imgui STATIC ${_sources} "${_font_source}")
target_include_directories(nanquest_imgui SYSTEM PUBLIC "${_imgui}" "${_implot}")
target_include_directories(nanquest_imgui PUBLIC "${PROJECT_SOURCE_DIR}")
# Numeric types, index width, test hooks and the assert handler are set there, for every user alike.
target_compile_definitions(nanquest_imgui PUBLIC "IMGUI_USER_CONFIG=\"viewer/ui/imgui_config.h\"")
target_compile_options(nanquest_imgui PRIVATE -w)

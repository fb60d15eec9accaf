# The parts of a page of runs (src/page) become C strings in page.inc: a page needs no file but itself. A string literal
# may hold 4095 characters by the standard, so that they are arrays of bytes.
set(inc "")
foreach(part page.html page.css chart.js heat.js lead.js predictions.js page.js)
  set(file ${PROJECT_SOURCE_DIR}/src/page/${part})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(MAKE_C_IDENTIFIER ${part} name)
  string(APPEND inc "static const unsigned char ${name}[] = {\n${bytes}0};\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/page.inc CONTENT "${inc}" @ONLY)

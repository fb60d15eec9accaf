/* What a fuzz target is made of: one function that feeds bytes to a reader, and helpers to say what must hold.
 *
 * A target defines fuzz_input(); common.c turns it into the entry point of libFuzzer, which driver.c also calls. A
 * reader may refuse any input, with a message; it may never crash, leak, hang or take memory out of proportion.
 */
#ifndef MIXT_TESTS_FUZZ_H
#define MIXT_TESTS_FUZZ_H

#include "mixt/data.h"

#include <stdint.h>
#include <stdlib.h>

enum { FUZZ_INPUT_MAX = 16384 };

/** One input: to be read, refused or taken, and everything closed again. */
void fuzz_input(const uint8_t *data, size_t size);

/** The entry point: fuzz_input, and that nothing of it stays allocated. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/** Called once before the first input, where a target has something to prepare. */
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

/** Writes a file of that name into the program's own folder, in memory where the machine has such; its path is valid
 *  until eight calls later. */
const char *fuzz_file(const char *name, const void *data, size_t size);
/** The path that fuzz_file would give. */
const char *fuzz_path(const char *name);
/** Removes the folder and what is in it; also done at exit. */
void fuzz_folder_remove(void);

/** True for MIXT_OK; a failure must have left a message. */
bool fuzz_taken(mixt_status status);

/** Opens a data set; when that succeeds, checks what it says of itself and reads samples from its ends. */
void fuzz_data_set(const char *spec, mixt_data_options options);

/** Ends the program, naming the condition: for what must hold whatever the input is. */
#define fuzz_require(condition) ((condition) ? (void)0 : fuzz_failed(__FILE__, __LINE__, #condition))
void fuzz_failed(const char *file, int line, const char *condition) __attribute__((noreturn));

#endif

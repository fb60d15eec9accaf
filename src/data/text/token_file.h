/* Token files: a header, then the tokens of a text as UINT16 or UINT32, little-endian. Read by mapping.
 *
 * The header tells what was tokenised how, and has a checksum over the tokens and one over itself: a file that was cut
 * off, changed or only half written is refused. Raw UINT16 files without a header (*.bin of other trainers) are read
 * too, once the size of the vocabulary is known. Nothing here knows how tokens are made.
 */
#ifndef MIXT_DATA_TOKEN_FILE_H
#define MIXT_DATA_TOKEN_FILE_H

#include "data/text/tokenizer.h"
#include "store/file.h"

/** What a header says beside the tokens' number and width. */
typedef struct mixt__token_facts {
    int64_t vocabulary; // tokens are below it
    mixt__special_tokens special;
    uint64_t fingerprint; // of the tokenizer
    uint64_t source;      // of the text: mixt__text_fingerprint
} mixt__token_facts;

typedef struct mixt__token_file {
    mixt__file_map map;
    void *block; // owned: tokens that are in no file; NULL: they are mapped
    const void *ids;
    int width; // bytes of a token: 2 or 4
    int64_t count;
    mixt__token_facts facts;
} mixt__token_file;

/** Whether a file says itself what its tokens are; a raw one does not. */
bool mixt__token_file_has_header(const char *path);
/** Opens a file and checks every token.
 *  @param vocabulary of a raw file, whose facts are otherwise unknown; 0: only files with a header.
 *  @param trusted leaves the pass over all tokens out: they were checked a moment ago. */
mixt_status mixt__token_file_open(const char *path, int64_t vocabulary, bool trusted, mixt__token_file *file);
void mixt__token_file_close(mixt__token_file *file);

/** Tokens that are gathered in memory: no cache folder can be written. */
typedef struct mixt__token_memory {
    unsigned char *ids;
    int width;
    int64_t count, capacity;
} mixt__token_memory;

/** A mixt__token_sink: `user` is the memory, whose width must be set. */
mixt_status mixt__token_memory_append(void *user, const uint32_t *ids, int64_t count);
/** Bytes of a token by the size of the vocabulary. */
int mixt__token_width(int64_t vocabulary);

typedef struct mixt__token_writer {
    mixt__file_writer file;
    mixt__token_facts facts;
    int width;
    int64_t count;
    uint64_t checksum;
    unsigned char *block; // MIXT_TOKEN_BLOCK bytes
    int64_t filled;
} mixt__token_writer;

enum { MIXT_TOKEN_BLOCK = 1 << 20 };

/** The width follows from the vocabulary. */
mixt_status mixt__token_writer_open(mixt__token_writer *writer, const char *path, bool overwrite,
                                    const mixt__token_facts *facts);
/** A mixt__token_sink: `user` is the writer. */
mixt_status mixt__token_writer_append(void *user, const uint32_t *ids, int64_t count);
/** Puts the file in its place; after this, or a failure of it, the writer is closed. */
mixt_status mixt__token_writer_commit(mixt__token_writer *writer);
void mixt__token_writer_abandon(mixt__token_writer *writer);

#endif

/* What the writer, the reader and the keeper of checkpoints share; nobody else includes this. */
#ifndef MIXT_STORE_CHECKPOINT_INSIDE_H
#define MIXT_STORE_CHECKPOINT_INSIDE_H

#include "store/checkpoint.h"
#include "store/file.h"

#define MIXT_CHECKPOINT_STATE "state.safetensors"
#define MIXT_CHECKPOINT_MANIFEST "manifest.json"
#define MIXT_CHECKPOINT_FORMAT "mixt checkpoint"
#define MIXT_CHECKPOINT_TEMPORARY ".saving-" // begins the name of a folder that is being filled

enum {
    MIXT_CHECKPOINT_INSIDE = MIXT_CHECKPOINT_PATH + 320, // room for the path of a file inside a checkpoint
    MIXT_CHECKPOINT_VERSION = 1,
    MIXT_CHECKPOINT_VERSION_CUT = 2, // some tensors have several checksums
    MIXT_CHECKPOINT_SEAL = 36,       // bytes that end a manifest: its checksum and the closing brace
    /* As text: objects take about 20 times as much. A manifest has about 100 bytes for each tensor. */
    MIXT_CHECKPOINT_MANIFEST_MOST = 16 << 20,
};

/** Writes the MIXT_CHECKPOINT_SEAL bytes and a NUL. */
void mixt__checkpoint_seal(char *text, uint64_t sum);
/** Length word and header of a safetensors file; the word alone where it is more than the file, or a header, has. */
size_t mixt__checkpoint_header_bytes(const mixt__file_map *map);
/** Fails when there is something at `path` that is neither empty nor a checkpoint alone: its own files, or such as
 * `content` has too. */
mixt_status mixt__checkpoint_replaceable(const char *path, const mixt__checkpoint_content *content);
/** The state file of a draft, with its header; fills the rest of the draft. */
mixt_status mixt__checkpoint_state_make(mixt__checkpoint_draft *draft, const mixt__checkpoint_content *content);
/** What the manifest says of it: {bytes, header, tensors: {name: checksum or [[bytes, checksum], …]}}.
 *  @param sums are sorted @param cut whether a tensor has more than one */
mixt_status mixt__checkpoint_state_record(const mixt__checkpoint_draft *draft, const mixt__checkpoint_content *content,
                                          mixt__checkpoint_sum *sums, int64_t count, json_t *record, bool *cut);
/** Fails unless the manifest in a folder, which has just been written, says what it was meant to. */
mixt_status mixt__checkpoint_read_back(const char *folder, const json_t *written);
/** As a manifest has it. */
json_t *mixt__checkpoint_hex(uint64_t sum);
/** Where one goes for a moment, beside its own place, while another takes that and the two cannot be exchanged. */
void mixt__checkpoint_aside(const char *folder, char path[MIXT_CHECKPOINT_INSIDE]);
/** Removes a folder with its regular files, as far as that goes; nothing through a link. */
void mixt__checkpoint_remove(const char *path);

#endif

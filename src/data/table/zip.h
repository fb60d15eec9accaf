/* ZIP archives: the list of their members, and the bytes of one. */
#ifndef MIXT_DATA_ZIP_H
#define MIXT_DATA_ZIP_H

#include "store/file.h"

enum { MIXT_ZIP_NAME = 128 };

typedef struct mixt__zip_member {
    char name[MIXT_ZIP_NAME];
    int method; // 0: stored, 8: deflate
    uint32_t checksum;
    int64_t packed, size; // bytes in the file, and unpacked as the list says
    int64_t offset;       // of the packed bytes
} mixt__zip_member;

typedef struct mixt__zip {
    const char *path; // borrowed
    mixt__file_map map;
    mixt__zip_member *members; // owned
    int64_t count, capacity;
} mixt__zip;

/** Opens an archive and reads the list at its end. Members with a name too long for `name` are left out. */
mixt_status mixt__zip_open(const char *path, mixt__zip *zip);
void mixt__zip_close(mixt__zip *zip);
/** NULL when there is none of that name. */
const mixt__zip_member *mixt__zip_find(const mixt__zip *zip, const char *name);
/** The first `size` bytes of a member, no more of it is unpacked. All of them: the checksum is held against them. */
mixt_status mixt__zip_read(const mixt__zip *zip, const mixt__zip_member *member, unsigned char *bytes, int64_t size);

#endif

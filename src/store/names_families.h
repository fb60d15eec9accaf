/* The families, one file each; names_config.c lists them. */
#ifndef MIXT_STORE_NAMES_FAMILIES_H
#define MIXT_STORE_NAMES_FAMILIES_H

#include "store/names.h"

#include <stddef.h>

#define MIXT_FACT(name) (offsetof(mixt__name_facts, name) + 1)

extern const mixt__names mixt__names_gpt2, mixt__names_bert, mixt__names_bert_classify, mixt__names_resnet,
    mixt__names_vgg;
/** The families of the decoder; the last one has no name. */
extern const mixt__names mixt__names_decoders[];

#endif

/* mixt: mixed-precision training in C. This header is the whole public interface. */
#ifndef MIXT_MIXT_H
#define MIXT_MIXT_H

#include "mixt/compute.h"
#include "mixt/data.h"
#include "mixt/generate.h"
#include "mixt/graph.h"
#include "mixt/num.h"
#include "mixt/train.h"
#include "mixt/types.h"

#endif

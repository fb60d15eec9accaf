/* Counts with atomic operations: a block may be given back by another thread than the one that took it. */
#include "base/account.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct mixt__account {
    mixt__account *parent; // held by this one
    size_t bytes, mapped;
    int64_t holders; // the owner, accounts below, blocks and mappings
};

static _Thread_local mixt__account *current;

static void hold(mixt__account *a)
{
    __atomic_add_fetch(&a->holders, 1, __ATOMIC_RELAXED);
}

static void drop(mixt__account *a)
{
    while (a && __atomic_sub_fetch(&a->holders, 1, __ATOMIC_ACQ_REL) == 0) {
        mixt__account *parent = a->parent;
        free(a);
        a = parent;
    }
}

mixt__account *mixt__account_open(mixt__account *parent)
{
    mixt__account *a = calloc(1, sizeof *a); // not mixt__alloc, which books on accounts itself
    if (!a)
        return NULL;
    a->holders = 1;
    a->parent = parent;
    if (parent)
        hold(parent);
    return a;
}

void mixt__account_close(mixt__account *account)
{
    drop(account);
}

mixt__account *mixt__account_use(mixt__account *account)
{
    mixt__account *before = current;
    current = account;
    return before;
}

mixt__account *mixt__account_now(void)
{
    return current;
}

size_t mixt__account_bytes(const mixt__account *a)
{
    return a ? __atomic_load_n(&a->bytes, __ATOMIC_RELAXED) : 0;
}

size_t mixt__account_mapped(const mixt__account *a)
{
    return a ? __atomic_load_n(&a->mapped, __ATOMIC_RELAXED) : 0;
}

/** One of the two counts of an account. */
static size_t *count_of(mixt__account *a, bool mapped)
{
    return mapped ? &a->mapped : &a->bytes;
}

static mixt__account *add(size_t bytes, bool mapped)
{
    for (mixt__account *a = current; a; a = a->parent)
        __atomic_add_fetch(count_of(a, mapped), bytes, __ATOMIC_RELAXED);
    if (current)
        hold(current);
    return current;
}

static void take_off(mixt__account *account, size_t bytes, bool mapped)
{
    for (mixt__account *a = account; a; a = a->parent)
        __atomic_sub_fetch(count_of(a, mapped), bytes, __ATOMIC_RELAXED);
    drop(account);
}

mixt__account *mixt__account_add(size_t bytes)
{
    return add(bytes, false);
}

void mixt__account_remove(mixt__account *account, size_t bytes)
{
    take_off(account, bytes, false);
}

mixt__account *mixt__account_add_mapped(size_t bytes)
{
    return add(bytes, true);
}

void mixt__account_remove_mapped(mixt__account *account, size_t bytes)
{
    take_off(account, bytes, true);
}

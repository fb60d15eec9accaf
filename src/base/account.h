/* Who holds how much memory: blocks of mixt__alloc, and files that are mapped, booked on the account that their thread
 * was at work for when it took them. Giving a block back takes it off that account, whoever does it and when.
 *
 * An account lives as long as its owner or any block that is booked on it.
 */
#ifndef MIXT_BASE_ACCOUNT_H
#define MIXT_BASE_ACCOUNT_H

#include <stddef.h>

typedef struct mixt__account mixt__account;

/** A new one, with nothing on it; NULL when there is no memory, and everything below takes that too.
 *  @param parent what is booked on the new one is booked there as well; NULL: nowhere else */
mixt__account *mixt__account_open(mixt__account *parent);
/** The owner needs it no more; NULL is allowed. */
void mixt__account_close(mixt__account *account);

/** From now on this thread's blocks are booked here (NULL: nowhere); returns where they were booked before. */
mixt__account *mixt__account_use(mixt__account *account);
/** Where this thread's blocks are booked. */
mixt__account *mixt__account_now(void);

/** Bytes held now in blocks, and in mapped files. */
size_t mixt__account_bytes(const mixt__account *account);
size_t mixt__account_mapped(const mixt__account *account);

/* For those who take memory: a block, or a mapping, comes to the account of this thread, which is returned to be
 * remembered, and goes from the one remembered. */
mixt__account *mixt__account_add(size_t bytes);
void mixt__account_remove(mixt__account *account, size_t bytes);
mixt__account *mixt__account_add_mapped(size_t bytes);
void mixt__account_remove_mapped(mixt__account *account, size_t bytes);

#endif

/* What a test does less of under the sanitizers, where memory is what counts: every sixth case of a long list shows
 * that as well, and the plain build runs all of them. */
#ifndef MIXT_TESTS_SANITIZED_H
#define MIXT_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__)
enum { CASE_STRIDE = 6 };
#else
enum { CASE_STRIDE = 1 };
#endif

#endif

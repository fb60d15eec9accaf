/* What Python's str knows of texts: blanks, characters, where one text stands in another. Texts are valid UTF-8. */
#ifndef MIXT_TEMPLATE_TEXT_H
#define MIXT_TEMPLATE_TEXT_H

#include "template/value.h"

/** str.isspace of one character. */
bool mixt__tpl_is_blank(uint32_t code);
/** Bytes of the character that begins, or ends, here; 0 where the text does. */
size_t mixt__tpl_forward(const char *text, size_t size, uint32_t *code);
size_t mixt__tpl_backward(const char *text, size_t size, uint32_t *code);
/** Cuts characters off: those of `which`, or blanks where it is NULL. */
void mixt__tpl_strip(mixt__tpl_value *text, const mixt__tpl_value *which, bool left, bool right);
/** Where `part` begins; -1: nowhere. An empty part is at the beginning. */
int64_t mixt__tpl_find_text(const char *text, size_t size, const char *part, size_t part_size);
int64_t mixt__tpl_find_text_last(const char *text, size_t size, const char *part, size_t part_size);
/** Characters of a text, and the byte at which character `index` begins. */
int64_t mixt__tpl_characters(const char *text, size_t size);
size_t mixt__tpl_character_at(const char *text, size_t size, int64_t index);

#endif

/* Numbers as Python prints them. */
#ifndef MIXT_TEMPLATE_NUMBER_H
#define MIXT_TEMPLATE_NUMBER_H

enum { MIXT_TPL_NUMBER_ROOM = 40 };

/** repr of a float: the fewest digits that read back as it. */
void mixt__tpl_print_float(char text[MIXT_TPL_NUMBER_ROOM], double value);

#endif

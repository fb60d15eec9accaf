/* How people write digits: for each a few ways, as points that a pen passes. draw.c bends and draws them. */
#include "data/image/digits.h"

#define START(x, y)                                                                                                    \
    {                                                                                                                  \
        x, y, MIXT_PEN_START                                                                                           \
    }
#define CURVE(x, y)                                                                                                    \
    {                                                                                                                  \
        x, y, MIXT_PEN_CURVE                                                                                           \
    }
#define CORNER(x, y)                                                                                                   \
    {                                                                                                                  \
        x, y, MIXT_PEN_CORNER                                                                                          \
    }

const mixt__glyph mixt__glyphs[] = {
    {0,
     {START(52, 0), CURVE(22, 14), CURVE(8, 50), CURVE(22, 87), CURVE(50, 100), CURVE(79, 86), CURVE(92, 50),
      CURVE(78, 13), CURVE(48, 1)}},
    {0,
     {START(64, 4), CURVE(34, 7), CURVE(13, 42), CURVE(20, 86), CURVE(50, 100), CURVE(80, 82), CURVE(88, 40),
      CURVE(70, 6), CURVE(42, 4)}},
    {0,
     {START(40, 6), CURVE(22, 30), CURVE(20, 70), CURVE(42, 98), CURVE(68, 90), CURVE(80, 55), CURVE(72, 16),
      CURVE(50, 0), CURVE(34, 10)}},
    {1, {START(53, 0), CURVE(51, 50), CURVE(48, 100)}},
    {1, {START(28, 24), CURVE(44, 14), CORNER(57, 0), CURVE(54, 50), CURVE(52, 100)}},
    {1, {START(30, 20), CORNER(54, 0), CURVE(53, 50), CURVE(52, 100), START(26, 100), CURVE(80, 99)}},
    {2,
     {START(12, 26), CURVE(26, 6), CURVE(55, 0), CURVE(82, 16), CURVE(80, 40), CURVE(52, 68), CORNER(10, 99),
      CURVE(50, 97), CURVE(92, 98)}},
    {2,
     {START(15, 20), CURVE(36, 2), CURVE(70, 6), CURVE(80, 30), CURVE(60, 62), CURVE(30, 90), CURVE(12, 92),
      CURVE(20, 78), CURVE(42, 84), CURVE(66, 98), CURVE(92, 90)}},
    {2, {START(15, 12), CURVE(50, 0), CURVE(80, 18), CURVE(68, 50), CURVE(40, 75), CORNER(12, 98), CURVE(90, 100)}},
    {3,
     {START(15, 11), CURVE(45, 0), CURVE(78, 12), CURVE(74, 34), CORNER(42, 47), CURVE(80, 57), CURVE(87, 80),
      CURVE(54, 100), CURVE(12, 88)}},
    {3, {START(14, 4), CORNER(82, 3), CORNER(44, 40), CURVE(80, 54), CURVE(86, 80), CURVE(52, 100), CURVE(12, 89)}},
    {3,
     {START(18, 15), CURVE(45, 0), CURVE(74, 15), CURVE(66, 38), CURVE(44, 47), CURVE(40, 45), CURVE(62, 48),
      CURVE(84, 66), CURVE(74, 92), CURVE(40, 100), CURVE(12, 86)}},
    {4,
     {START(30, 0), CURVE(20, 32), CORNER(12, 58), CURVE(50, 57), CURVE(90, 56), START(67, 22), CURVE(64, 60),
      CURVE(62, 100)}},
    {4, {START(68, 100), CURVE(68, 50), CORNER(67, 0), CURVE(36, 34), CORNER(8, 66), CURVE(50, 65), CURVE(95, 64)}},
    {4, {START(20, 2), CURVE(17, 40), CURVE(40, 54), CURVE(76, 44), START(80, 0), CURVE(75, 50), CURVE(68, 100)}},
    {5,
     {START(82, 2), CURVE(54, 3), CORNER(26, 3), CORNER(21, 44), CURVE(54, 36), CURVE(85, 58), CURVE(78, 88),
      CURVE(44, 100), CURVE(10, 90)}},
    {5,
     {START(30, 4), CORNER(23, 46), CURVE(58, 40), CURVE(84, 65), CURVE(64, 97), CURVE(12, 92), START(30, 4),
      CURVE(86, 1)}},
    {5,
     {START(80, 5), CURVE(48, 4), CURVE(24, 20), CURVE(32, 42), CURVE(66, 50), CURVE(82, 72), CURVE(60, 98),
      CURVE(14, 92)}},
    {6,
     {START(70, 2), CURVE(36, 25), CURVE(13, 64), CURVE(28, 97), CURVE(65, 97), CURVE(82, 75), CURVE(62, 53),
      CURVE(30, 59), CURVE(14, 76)}},
    {6,
     {START(54, 0), CURVE(28, 40), CURVE(16, 75), CURVE(38, 100), CURVE(74, 90), CURVE(77, 65), CURVE(50, 55),
      CURVE(20, 74)}},
    {7, {START(10, 6), CURVE(50, 5), CORNER(88, 4), CURVE(60, 50), CURVE(40, 100)}},
    {7, {START(10, 5), CORNER(86, 4), CURVE(58, 50), CURVE(42, 100), START(28, 52), CURVE(78, 49)}},
    {7, {START(12, 22), CORNER(13, 5), CURVE(50, 9), CORNER(88, 3), CURVE(58, 52), CURVE(48, 100)}},
    {8,
     {START(50, 47), CURVE(22, 30), CURVE(28, 6), CURVE(54, 0), CURVE(79, 10), CURVE(75, 32), CURVE(50, 48),
      CURVE(20, 68), CURVE(20, 91), CURVE(50, 100), CURVE(81, 90), CURVE(80, 67), CURVE(50, 47)}},
    {8,
     {START(80, 15), CURVE(50, 0), CURVE(22, 17), CURVE(40, 42), CURVE(74, 65), CURVE(78, 90), CURVE(48, 100),
      CURVE(18, 86), CURVE(30, 62), CURVE(66, 38), CURVE(80, 15)}},
    {9,
     {START(80, 22), CURVE(52, 0), CURVE(20, 16), CURVE(22, 44), CURVE(54, 52), CORNER(80, 20), CURVE(78, 60),
      CURVE(70, 100)}},
    {9,
     {START(80, 24), CURVE(54, 2), CURVE(24, 14), CURVE(20, 42), CURVE(50, 54), CORNER(81, 22), CURVE(80, 68),
      CURVE(60, 96), CURVE(22, 94)}},
    {9,
     {START(66, 8), CURVE(34, 6), CURVE(20, 30), CURVE(40, 50), CURVE(68, 34), CURVE(74, 8), CURVE(66, 52),
      CURVE(54, 100)}},
};

const int mixt__glyph_count = sizeof mixt__glyphs / sizeof mixt__glyphs[0];

#pragma once
/* Numbers as people read them. */

struct buf;

/* 0.0011 is "1.1 ms", 1.25 is "1.3 s", 7200 is "2 h". */
void people_time(struct buf *to, double seconds);
/* 74506240 is "71.1 MiB". */
void people_bytes(struct buf *to, double bytes);

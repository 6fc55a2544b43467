#pragma once
/* The messages that come over a WebSocket, in their order: long ones are read and freed beside the
 * loop (crew.h), and those behind them wait. Embedded in the one who gets them. For api/ only. */

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct crew;
struct mail;
struct ws;

struct inbox {
    struct crew *crew; /* borrowed, as all of this */
    uint64_t owner;    /* see crew.h */
    struct ws *ws;
    void *arg;
    /* What is made of a message; may be called beside the loop, and touches nothing else. The bytes
     * stay until it is dropped. */
    void *(*read)(const void *data, size_t len, bool binary);
    void (*take)(void *arg, void *message); /* in the loop */
    void (*drop)(void *message);            /* may be called beside the loop */
    /* Reading one beside the loop took so much processor time; or NULL. */
    void (*on_cost)(void *arg, uint64_t cpu_ns);
    /* its own */
    struct mail *first;
    bool is_held;
};

void inbox_add(struct inbox *b, const void *data, size_t len, bool binary);
/* Whoever takes them has enough for now: instead of ws_hold. */
void inbox_hold(struct inbox *b, bool hold);
/* Nobody takes any more. */
void inbox_done(struct inbox *b);

#pragma once
/* The parts of an answer as they are added, and what of them goes out: clients show models so much
 * text and no more, and then they choose what is cut; so it is cut here, where the whole is at
 * hand.
 */

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct jw;
struct mcp_link;

#define CONTENT_TEXT_MAX   30000 /* characters of all texts of an answer */
#define CONTENT_ERROR_MAX  10000 /* the same of an error */
#define CONTENT_IMAGES_MAX 8
#define CONTENT_IMAGE_MAX  (4u << 20) /* bytes of one, */
#define CONTENT_BYTES_MAX  (6u << 20) /* and of all in base64 */

enum content_kind { CONTENT_TEXT, CONTENT_IMAGE, CONTENT_AUDIO, CONTENT_READY, CONTENT_ROLE };

struct content_part {
    enum content_kind kind;
    const char *role; /* of CONTENT_ROLE: a constant */
    char mime[100];   /* of an image or sound */
    struct buf bytes; /* text, base64, or JSON that is ready */
};

struct content {
    struct content_part *parts; /* owned */
    unsigned n, cap, images;
    size_t bytes;     /* of images and sounds */
    struct buf whole; /* a link as JSON, for what is cut; or nothing */
    char *whole_uri;  /* owned */
};
#define CONTENT_INIT                                                                               \
    { .whole = BUF_INIT }

void content_text(struct content *c, const char *text, size_t len);
void content_media(struct content *c, enum content_kind kind, const char *mime, const char *base64,
                   size_t len);
/* A part that is JSON already, which is taken. */
void content_ready(struct content *c, struct buf *json);
void content_whole(struct content *c, const struct mcp_link *l);
/* In a prompt: whose what follows is. */
void content_role(struct content *c, const char *role);
void content_done(struct content *c);

/* A link, as the object of a content part ("type" first) or of a list of resources. */
void content_put_link(struct jw *j, const struct mcp_link *l, bool is_part);
/* The array `content` of a result. An answer without parts has one empty text, since some clients
 * take none for an error, but for a tool that never says anything (is_void). */
void content_put(struct jw *j, const struct content *c, bool is_error, bool is_void);
/* The array `messages` of a prompt. */
void content_put_messages(struct jw *j, const struct content *c);

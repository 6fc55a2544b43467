/* See audit.h. A line is written in one piece with O_APPEND, so lines of two servers never mix. */

#include "api/audit.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "keys/keys.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void audit_code(struct audit_code *to, const char *code, size_t len, bool keep) {
    uint8_t hash[32];
    keys_sha256(code, len, hash);
    for (int i = 0; i < 32; i++)
        snprintf(to->sha256 + 2 * i, 3, "%02x", hash[i]);
    to->len = len;
    to->text = keep ? xmalloc(len + 1) : NULL;
    if (keep)
        memcpy(to->text, code, len);
}

void audit_code_done(struct audit_code *c) {
    free(c->text);
    c->text = NULL;
}

/* A disk that was full, or a server that was killed, may have left half a line. */
static bool is_cut(int fd) {
    struct stat st;
    char last;
    return fstat(fd, &st) == 0 && st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1 &&
           last != '\n';
}

int audit_open(struct audit *ret, int dir, const char *name, struct err *e) {
    *ret = (struct audit){
        .fd = openat(dir, name, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640)};
    if (ret->fd < 0)
        return err_sys(e, "open %s", name);
    ret->cut = is_cut(ret->fd);
    return 0;
}

void audit_write(struct audit *a, const struct audit_line *l) {
    struct timespec now;
    struct err e;
    AUTO_BUF line = BUF_INIT;
    struct jw j = JW_INIT(&line);
    if (a->fd < 0)
        return;
    if (a->cut)
        buf_addc(&line, '\n');
    clock_gettime(CLOCK_REALTIME, &now);
    jw_object(&j);
    jw_key_real(&j, "time", (double)now.tv_sec + (double)now.tv_nsec / 1e9);
    jw_key_str(&j, "execution", l->execution);
    jw_key_str(&j, "request", l->request);
    jw_key_str(&j, "tenant", l->tenant);
    jw_key_str(&j, "key", l->key[0] ? l->key : NULL);
    jw_key_str(&j, "code_sha256", l->code->sha256);
    jw_key_uint(&j, "code_bytes", l->code->len);
    if (l->code->text) {
        jw_key(&j, "code");
        jw_strn(&j, l->code->text, l->code->len);
    }
    jw_key_str(&j, "status", l->status);
    jw_key_str(&j, "profile", l->profile);
    if (l->receipt)
        jw_key_real(&j, "cpu_ms", l->receipt->cpu_ms);
    else
        jw_key_null(&j, "cpu_ms");
    jw_key(&j, "denied");
    jw_array(&j);
    for (unsigned i = 0; l->receipt && i < l->receipt->ndenied; i++)
        jw_str(&j, l->receipt->denied[i].op);
    jw_array_end(&j);
    jw_object_end(&j);
    buf_addc(&line, '\n');
    a->cut = false;
    if (fd_write_all(a->fd, line.data, line.len, &e) < 0) {
        log_error("audit log error=%s", log_text(e.text));
        a->cut = is_cut(a->fd);
    }
}

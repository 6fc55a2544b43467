/* See editor.h. */

#include "remote/shell/editor.h"

#include "base/fd.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <wchar.h>

#define HISTORY_LINES 1000
#define SHOWN_MAX     200 /* matches */
#define PASTE_MAX     (1u << 20)
#define PASTE_ON      "\033[?2004h" /* the terminal marks what is pasted: */
#define PASTE_OFF     "\033[?2004l"
#define PASTE_BEGINS  "\033[200~"
#define PASTE_ENDS    "\033[201~"

struct editor {
    EditLine *el;
    History *history;
    char *history_file; /* owned, or NULL */
    const char *prompt; /* borrowed, while a line is read */
    int signals;        /* borrowed */
    int signal;         /* that ended the reading, or 0 */
    struct editor_completion completion;
};

static struct editor *editor_of(EditLine *el) {
    void *data = NULL;
    el_get(el, EL_CLIENTDATA, &data);
    return data;
}

static char *show_prompt(EditLine *el) {
    return (char *)(uintptr_t)editor_of(el)->prompt; /* it only reads it */
}

/* ---- keys ---- */

/* 1: a byte; 0: the end; -1: a signal. */
static int read_byte(struct editor *ed, char *ret) {
    for (;;) {
        struct pollfd p[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = ed->signals, .events = POLLIN}};
        struct signalfd_siginfo info;
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return 0;
        if (p[1].revents && read(ed->signals, &info, sizeof info) == (ssize_t)sizeof info) {
            if (info.ssi_signo != SIGWINCH) {
                ed->signal = (int)info.ssi_signo;
                return -1;
            }
            el_resize(ed->el);
        }
        if (!p[0].revents)
            continue;
        ssize_t n = read(STDIN_FILENO, ret, 1);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        return n == 1;
    }
}

/* One character for libedit, from as many bytes as it has. */
static int read_one_key(EditLine *el, wchar_t *ret) {
    struct editor *ed = editor_of(el);
    mbstate_t state = {0};
    for (;;) {
        char byte;
        int rc = read_byte(ed, &byte);
        if (rc <= 0)
            return rc;
        size_t n = mbrtowc(ret, &byte, 1, &state);
        if (n == (size_t)-2)
            continue;
        if (n == (size_t)-1)
            *ret = L'\xfffd';
        return 1;
    }
}

/* ---- Tab ---- */

static size_t common_prefix(const struct editor_matches *m) {
    size_t len = strlen(m->items[0]);
    for (unsigned i = 1; i < m->n; i++) {
        size_t k = 0;
        while (k < len && m->items[i][k] == m->items[0][k])
            k++;
        len = k;
    }
    while (len && ((unsigned char)m->items[0][len] & 0xc0) == 0x80)
        len--; /* no half characters */
    return len;
}

static bool is_plain_text(const char *text, size_t len) {
    for (size_t at = 0, n; at < len; at += n) {
        uint32_t c;
        n = text_char(text + at, len - at, &c);
        if (n == 0 || !text_is_plain(c))
            return false;
    }
    return true;
}

static size_t count_characters(const char *text, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

static void show_matches(const struct editor_matches *m) {
    AUTO_BUF out = BUF_INIT;
    buf_addc(&out, '\n');
    for (unsigned i = 0; i < m->n && i < SHOWN_MAX; i++) {
        text_add_plain(&out, m->items[i], strlen(m->items[i]));
        buf_adds(&out, i + 1 < m->n && i + 1 < SHOWN_MAX ? "  " : "");
    }
    if (m->n > SHOWN_MAX)
        buf_addf(&out, "  and %u more", m->n - SHOWN_MAX);
    buf_addc(&out, '\n');
    struct err ignored;
    (void)fd_write_all(STDOUT_FILENO, out.data, out.len, &ignored);
}

/* Bytes behind the cursor that belong to the same word. */
static size_t rest_of_word(const LineInfo *li) {
    size_t n = 0;
    for (const char *p = li->cursor; p < li->lastchar; p++, n++)
        if (!isalnum((unsigned char)*p) && *p != '_' && (unsigned char)*p < 0x80)
            break;
    return n;
}

/* Of a word that goes on behind the cursor, what the match ends with is not there twice. */
static void drop_rest(EditLine *el, const char *text) {
    const LineInfo *li = el_line(el);
    size_t rest = rest_of_word(li), len = strlen(text);
    if (!rest || rest > len || memcmp(text + len - rest, li->cursor, rest) != 0)
        return;
    int n = (int)count_characters(li->cursor, rest);
    el_cursor(el, n);
    el_deletestr(el, n);
}

/* What is inserted begins with what was typed: "alias" does not become "%alias". */
static unsigned char insert(EditLine *el, const struct editor_matches *m) {
    const LineInfo *li = el_line(el);
    size_t len = common_prefix(m), typed = 0;
    for (size_t n = 0; n < m->replaces && typed < (size_t)(li->cursor - li->buffer);)
        n += ((unsigned char)li->cursor[-(ptrdiff_t)++typed] & 0xc0) != 0x80;
    bool extends = len >= typed && memcmp(m->items[0], li->cursor - typed, typed) == 0;
    if (extends && (len > typed || m->n == 1)) {
        AUTO_FREE char *text = xstrndup(m->items[0], len);
        if (!text || !is_plain_text(text, len))
            return CC_ERROR;
        if (m->n == 1)
            drop_rest(el, text);
        el_deletestr(el, (int)m->replaces);
        return el_insertstr(el, text) < 0 ? CC_ERROR : CC_REFRESH;
    }
    show_matches(m);
    return CC_REDISPLAY;
}

static void free_matches(struct editor_matches *m) {
    for (unsigned i = 0; i < m->n; i++)
        free(m->items[i]);
    free(m->items);
}

/* Only blanks are before the cursor in its line. */
static bool blanks_before(const LineInfo *li) {
    for (const char *p = li->cursor; p > li->buffer && p[-1] != '\n'; p--)
        if (p[-1] != ' ' && p[-1] != '\t')
            return false;
    return true;
}

static unsigned char complete(EditLine *el, int ch) {
    struct editor *ed = editor_of(el);
    const LineInfo *li = el_line(el);
    size_t len = (size_t)(li->cursor - li->buffer);
    struct editor_matches m = {0};
    (void)ch;
    if (blanks_before(li)) /* at the start of a line Tab indents */
        return el_insertstr(el, "    ") < 0 ? CC_ERROR : CC_REFRESH;
    unsigned char rc = CC_ERROR;
    if (ed->completion.find(ed->completion.arg, li->buffer, len, &m) && m.n)
        rc = insert(el, &m);
    free_matches(&m);
    return rc;
}

/* ---- other keys ---- */

/* One step of the indentation at once. */
static unsigned char backspace(EditLine *el, int ch) {
    const LineInfo *li = el_line(el);
    (void)ch;
    if (li->cursor == li->buffer)
        return CC_ERROR;
    size_t n = 0;
    while (li->cursor - n > li->buffer && li->cursor[-(ptrdiff_t)n - 1] == ' ')
        n++;
    el_deletestr(el, n >= 4 && n % 4 == 0 && blanks_before(li) ? 4 : 1);
    return CC_REFRESH;
}

/* Newlines and tabs are all that is left of control characters; the end has none. */
static void tidy_paste(struct buf *text) {
    size_t n = 0;
    for (size_t i = 0; i < text->len; i++) {
        char c = text->data[i];
        if (c == '\r' && i + 1 < text->len && text->data[i + 1] == '\n')
            continue;
        if (c == '\r')
            c = '\n';
        if ((unsigned char)c >= 0x20 ? c != 0x7f : c == '\n' || c == '\t')
            text->data[n++] = c;
    }
    while (n && text->data[n - 1] == '\n')
        n--;
    text->len = n;
    text->data[n] = '\0';
}

/* All of it comes into the line, however many lines it has: nothing in it is a key. */
static unsigned char paste(EditLine *el, int ch) {
    struct editor *ed = editor_of(el);
    static const char end[] = PASTE_ENDS;
    size_t matched = 0;
    AUTO_BUF text = BUF_INIT;
    (void)ch;
    while (matched < sizeof end - 1) {
        char byte;
        int rc = read_byte(ed, &byte);
        if (rc <= 0)
            return CC_EOF;
        if (text.len < PASTE_MAX)
            buf_addc(&text, byte);
        matched = byte == end[matched] ? matched + 1 : byte == end[0];
    }
    text.len = text.len < PASTE_MAX ? text.len - (sizeof end - 1) : text.len;
    if (text.len)
        tidy_paste(&text);
    return text.len && el_insertstr(el, text.data) < 0 ? CC_ERROR : CC_REFRESH;
}

/* ---- life ---- */

static void load_history(struct editor *ed) {
    HistEvent ev;
    history(ed->history, &ev, H_SETSIZE, HISTORY_LINES);
    history(ed->history, &ev, H_SETUNIQUE, 1);
    if (ed->history_file)
        history(ed->history, &ev, H_LOAD, ed->history_file);
}

/* SECURITY: what was typed may hold secrets; the file is this user's alone from its first byte. */
static void save_history(struct editor *ed) {
    HistEvent ev;
    if (!ed->history_file)
        return;
    AUTO_FD fd = open(ed->history_file, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0)
        history(ed->history, &ev, H_SAVE, ed->history_file);
}

int editor_new(int signals, const struct editor_completion *c, const char *history_file,
               struct editor **ret, struct err *e) {
    struct editor *ed = xcalloc(1, sizeof *ed);
    ed->signals = signals;
    ed->completion = *c;
    ed->history_file = history_file ? xstrdup(history_file) : NULL;
    ed->history = history_init();
    ed->el = el_init("cloche", stdin, stdout, stderr);
    if (!ed->el || !ed->history) {
        editor_free(ed);
        return err_set(e, ENOMEM, "libedit does not start");
    }
    load_history(ed);
    el_set(ed->el, EL_CLIENTDATA, ed);
    el_set(ed->el, EL_SIGNAL, 0);
    el_set(ed->el, EL_EDITOR, "emacs");
    el_set(ed->el, EL_PROMPT, show_prompt);
    el_set(ed->el, EL_HIST, history, ed->history);
    el_set(ed->el, EL_GETCFN, read_one_key);
    /* Not el_set, which copies both texts and never frees them. */
    el_wset(ed->el, EL_ADDFN, L"cloche-complete", L"Complete a name", complete);
    el_wset(ed->el, EL_ADDFN, L"cloche-backspace", L"Remove a character or a step", backspace);
    el_wset(ed->el, EL_ADDFN, L"cloche-paste", L"Insert what was pasted", paste);
    el_set(ed->el, EL_BIND, "^I", "cloche-complete", NULL);
    el_set(ed->el, EL_BIND, "^?", "cloche-backspace", NULL);
    el_set(ed->el, EL_BIND, "^H", "cloche-backspace", NULL);
    el_set(ed->el, EL_BIND, PASTE_BEGINS, "cloche-paste", NULL);
    el_set(ed->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    *ret = ed;
    return 0;
}

void editor_free(struct editor *ed) {
    if (!ed)
        return;
    if (ed->history) {
        save_history(ed);
        history_end(ed->history);
    }
    if (ed->el)
        el_end(ed->el);
    free(ed->history_file);
    free(ed);
}

static void write_terminal(const char *text) {
    struct err ignored;
    (void)fd_write_all(STDOUT_FILENO, text, strlen(text), &ignored);
}

/* Not before keys that are there already: they bring blanks of their own, from a program, or from a
 * terminal that does not mark what is pasted. */
static void indent_line(struct editor *ed, unsigned indent) {
    char blanks[128];
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    if (!indent || indent >= sizeof blanks || poll(&p, 1, 0) > 0)
        return;
    snprintf(blanks, sizeof blanks, "%*s", (int)indent, "");
    el_push(ed->el, blanks);
}

void editor_remember(struct editor *ed, const char *text) {
    HistEvent ev;
    size_t len = strlen(text);
    while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
        len--;
    AUTO_FREE char *entry = xstrndup(text, len);
    if (entry && len)
        history(ed->history, &ev, H_ENTER, entry);
}

enum editor_got editor_read(struct editor *ed, const char *prompt, unsigned indent, struct buf *to,
                            int *ret_signal) {
    int n = 0;
    ed->prompt = prompt;
    ed->signal = 0;
    el_set(ed->el, EL_PREP_TERM, 1); /* it would show the prompt first, and lose keys typed then */
    write_terminal(PASTE_ON);
    indent_line(ed, indent);
    const char *line = el_gets(ed->el, &n);
    write_terminal(PASTE_OFF);
    if (!line || n <= 0) {
        write_terminal("\n");
        *ret_signal = ed->signal;
        return ed->signal == SIGINT ? EDITOR_INTERRUPT : ed->signal ? EDITOR_LEAVE : EDITOR_END;
    }
    size_t len = (size_t)n;
    while (len && (line[len - 1] == '\n' || line[len - 1] == '\r'))
        len--;
    buf_add(to, line, len);
    return EDITOR_LINE;
}

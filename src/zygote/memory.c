/* See memory.h. It keeps two costs low, which both grow with what a profile preloads:
 *
 *   - A fork copies the page tables of private memory entry by entry. On huge pages there are 512
 * times fewer entries; a child's write still copies only 4 KiB. pymalloc takes its arenas one by
 * one from mmap, where they come to lie between libraries; here they come from one reserved range,
 * which can be made of huge pages and is one mapping.
 *   - A child that allocates from the holes of the zygote's heap copies a page for nearly every
 *     allocation. So the holes are filled once and for good, and children allocate from the end of
 * the heap, where pages are new and used to the full.
 *
 * What cannot be had (an older kernel, another libc) is left out: nothing depends on it. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03070000
#include <Python.h>

#include "zygote/memory.h"

#include "base/fd.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define HUGE_BYTES  (2ul << 20)
#define RANGE_BYTES (512ul << 20) /* address space, not memory */
#define SMALL_MAX   512           /* its largest size class */
#define MAX_HOLES   (64ul << 20)  /* bytes: whoever gives more has no pools (no pymalloc) */
#define MAX_FREED   4096
#define CACHED_MAX  (256ul << 10) /* bytes that malloc keeps for a thread, and calls taken */
#define WORTH_BYTES                                                                                \
    (32ul << 20) /* of less, a fork is cheap anyway, and collapsing takes a while                  \
                  */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* kernel 6.1 */
#endif

/* CPython's PyObjectArenaAllocator, the same since 3.4; not part of the limited API. */
struct arena_allocator {
    void *ctx;
    void *(*alloc)(void *ctx, size_t size);
    void (*free)(void *ctx, void *at, size_t size);
};

static struct {
    char *begin, *next, *end;
    size_t size; /* of an arena: they are all the same */
    void *freed[MAX_FREED];
    unsigned nfreed;
} range;

static void *arena_alloc(void *ctx, size_t size) {
    (void)ctx;
    if (range.size == 0)
        range.size = size;
    if (size == range.size && range.nfreed)
        return range.freed[--range.nfreed];
    if (size == range.size && size <= (size_t)(range.end - range.next)) {
        char *at = range.next;
        range.next += size;
        return at;
    }
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static void arena_free(void *ctx, void *at, size_t size) {
    (void)ctx;
    bool ours = (char *)at >= range.begin && (char *)at < range.end;
    if (ours && range.nfreed < MAX_FREED) {
        madvise(at, size, MADV_DONTNEED);
        range.freed[range.nfreed++] = at;
    } else if (ours) {
        madvise(at, size, MADV_DONTNEED);
    } else {
        munmap(at, size);
    }
}

void memory_begin(void) {
    void (*set)(struct arena_allocator *) = NULL;
    *(void **)&set = dlsym(RTLD_DEFAULT, "PyObject_SetArenaAllocator");
    char *at = mmap(NULL, RANGE_BYTES + HUGE_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!set || at == MAP_FAILED)
        return;
    at += HUGE_BYTES - (uintptr_t)at % HUGE_BYTES;
    range.begin = range.next = at;
    range.end = at + RANGE_BYTES;
    madvise(at, HUGE_BYTES, MADV_HUGEPAGE); /* every profile fills it: one fault instead of 512 */
    struct arena_allocator ours = {NULL, arena_alloc, arena_free};
    set(&ours);
}

/* SECURITY: nothing is written to what is taken here: a hole holds what the zygote once had, no
 * more. */
static void fill_malloc(void) {
    struct mallinfo2 info = mallinfo2();
    const char *top = (const char *)sbrk(0) - info.keepcost;
    size_t holes = info.fordblks + info.fsmblks - info.keepcost + CACHED_MAX, taken = 0;
    for (size_t size = 65536; size >= 24; size = size > 1040 ? size - size / 8 : size - 16) {
        while (taken <= holes) {
            char *p = malloc(size);
            if (!p || (p >= top && p < (const char *)sbrk(0))) {
                free(p);
                break;
            }
            taken += size;
        }
    }
}

/* Of pymalloc's pools: 16 KiB from 3.10 on. */
static size_t pool_bytes(void) {
    unsigned minor = 0;
    return sscanf(Py_GetVersion(), "3.%u", &minor) == 1 && minor < 10 ? 4096 : 16384;
}

static void fill_pymalloc(void) {
    size_t pool = pool_bytes();
    for (size_t size = 16; size <= SMALL_MAX; size += 16) {
        size_t whole = (pool - 64) / size, run = 0;
        char *last = NULL;
        for (size_t taken = 0; run + 1 < whole; taken += size) {
            if (taken > MAX_HOLES)
                return;
            char *p = PyObject_Malloc(size);
            run = p && p == last + size ? run + 1 : 0;
            last = p;
        }
        for (; last && run > 0; run--, last -= size) /* the new pool is for the children */
            PyObject_Free(last);
    }
}

/* Only what is in use: a huge page where there was nothing would be memory for nothing. */
static void collapse(char *from, char *to) {
    from += (HUGE_BYTES - (uintptr_t)from % HUGE_BYTES) % HUGE_BYTES;
    to -= (uintptr_t)to % HUGE_BYTES;
    if (to > from)
        madvise(from, (size_t)(to - from), MADV_COLLAPSE);
}

static bool is_worth(void) {
    return mallinfo2().arena + (size_t)(range.next - range.begin) >= WORTH_BYTES;
}

static void use_huge_pages(void) {
    if (!is_worth())
        return;
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    while (maps && fgets(line, sizeof line, maps)) {
        void *from, *to;
        unsigned long inode;
        char mode[8], name[8] = "";
        if (sscanf(line, "%p-%p %7s %*x %*s %lu %7s", &from, &to, mode, &inode, name) < 4)
            continue;
        bool heap = name[0] == '\0' || strncmp(name, "[heap]", 6) == 0;
        bool arenas = (char *)from >= range.begin && (char *)from < range.end;
        if (strcmp(mode, "rw-p") == 0 && inode == 0 && heap && !arenas)
            collapse(from, to);
    }
    if (maps)
        fclose(maps);
    collapse(range.begin, range.next + HUGE_BYTES - 1);
}

/* ---- a snapshot instead of copies ----
 *
 * What a fork has to copy entry by entry is private memory that was written to. So that is put into
 * a sealed file in memory, made of huge pages where they can be had, and the file is mapped in its
 * place. A small piece (every library has some) is then mapped by the child that reads it, and a
 * fork has nothing to copy there. Of a large one, and of the code of the interpreter and of libc,
 * the zygote maps what a kernel needs, so that a child has no faults there but for what it writes;
 * what no kernel needs would only be copied by each fork and dropped at each end. Memory that is
 * already made of huge pages stays as it is.
 *
 * A scout tells what a kernel needs: a child that never leaves the zygote's place, does once what
 * kernels do, and looks at what the kernel has mapped for it meanwhile. Where there is no answer,
 * all is mapped. */

#define PAGE        4096ul
#define PRESENT     (1ull << 63)
#define OF_FILE     (1ull << 61)
#define MAX_ENTRIES 4096
#define MAPS_MAX    (1ul << 20)
#define MAX_PIECES  2048
#define LARGE       (256ul << 10)
#define MAX_RUNS    1024
#define SCOUT_S     2 /* it takes some milliseconds */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* kernel 5.14 */
#endif

struct piece {
    char *at;
    size_t len;
    int prot;
};

struct snapshot {
    int file, pagemap;
    bool huge; /* what is large is of huge pages already */
    char code[2][64];
    struct piece pieces[MAX_PIECES];
    unsigned npieces;
    size_t size;
};

/* What is known of up to MAX_ENTRIES pages from `page` on, below `end`: how many those are, or 0.
 */
static size_t read_pages(int pagemap, uintptr_t page, uintptr_t end, uint64_t *entries) {
    size_t n = end - page < MAX_ENTRIES ? end - page : MAX_ENTRIES;
    return pread(pagemap, entries, n * 8, (off_t)(page * 8)) == (ssize_t)(n * 8) ? n : 0;
}

/* Whether a page of the mapping is the zygote's own, and not a file's. */
static bool is_written(const struct snapshot *s, const char *from, const char *to) {
    uint64_t entries[MAX_ENTRIES];
    for (uintptr_t page = (uintptr_t)from / PAGE, end = (uintptr_t)to / PAGE; page < end;) {
        size_t n = read_pages(s->pagemap, page, end, entries);
        if (n == 0)
            return false;
        for (size_t i = 0; i < n; i++) {
            if ((entries[i] & (PRESENT | OF_FILE)) == PRESENT)
                return true;
        }
        page += n;
    }
    return false;
}

static void add_piece(struct snapshot *s, char *from, char *to, int prot) {
    if (from >= to || s->npieces == MAX_PIECES)
        return;
    s->pieces[s->npieces++] = (struct piece){from, (size_t)(to - from), prot};
    s->size += (size_t)(to - from);
}

/* The length of a block that malloc has mapped by itself, if one begins here, else 0: it may one
 * day be made longer in place, and what follows in the file is not what should follow it. */
static size_t mapped_block(const char *at, const char *end) {
    const size_t *head = (const void *)at; /* glibc's: the size before, and this one's with bits */
    size_t size = head[1] & ~7ul;
    bool is = head[0] == 0 && (head[1] & 7) == 2 && size % PAGE == 0 && size > 0;
    return is && size <= (size_t)(end - at) ? size : 0;
}

static void add_between_blocks(struct snapshot *s, char *from, char *to, int prot) {
    for (char *at = from; at < to;) {
        size_t block = mapped_block(at, to);
        if (block)
            add_piece(s, from, at, prot);
        at += block ? block : PAGE;
        if (block)
            from = at;
    }
    add_piece(s, from, to, prot);
}

struct mapping {
    char *from, *to, mode[8], name[64];
    unsigned long inode;
};

static bool is_code(const struct snapshot *s, const struct mapping *m) {
    return m->mode[1] == '-' && m->inode &&
           (strcmp(m->name, s->code[0]) == 0 || strcmp(m->name, s->code[1]) == 0);
}

static void visit(struct snapshot *s, struct mapping *m) {
    int prot = (m->mode[0] == 'r' ? PROT_READ : 0) | (m->mode[1] == 'w' ? PROT_WRITE : 0) |
               (m->mode[2] == 'x' ? PROT_EXEC : 0);
    bool heap = strcmp(m->name, "[heap]") == 0;
    bool arenas = m->from < range.end && m->to > range.begin;
    if (!(prot & PROT_READ) || m->mode[3] != 'p' || (m->name[0] == '[' && !heap))
        return;
    if (arenas) {
        m->from = m->from > range.begin ? m->from : range.begin;
        m->to = m->to < range.next ? m->to : range.next;
    }
    if (s->huge && m->to - m->from >= (ptrdiff_t)HUGE_BYTES && !is_code(s, m))
        return;
    if (is_code(s, m) && (size_t)(m->to - m->from) >= LARGE)
        add_piece(s, m->from, m->to, prot);
    else if ((prot & PROT_EXEC) || m->from >= m->to || !is_written(s, m->from, m->to))
        return;
    else if (m->inode == 0 && !heap && !arenas)
        add_between_blocks(s, m->from, m->to, prot);
    else
        add_piece(s, m->from, m->to, prot);
}

static void find_pieces(struct snapshot *s, char *maps) {
    for (char *line = maps, *next; *line; line = next) {
        struct mapping m = {.name = ""};
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = '\0';
        if (sscanf(line, "%p-%p %7s %*x %*s %lu %63s", (void **)&m.from, (void **)&m.to, m.mode,
                   &m.inode, m.name) >= 4)
            visit(s, &m);
    }
}

/* Fills the file through a mapping of its own, where huge pages can be. */
static bool fill_file(const struct snapshot *s) {
    size_t whole = (s->size + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1), room = whole + HUGE_BYTES;
    char *space = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (space == MAP_FAILED || ftruncate(s->file, (off_t)whole) < 0)
        return false;
    char *at = space + (HUGE_BYTES - (uintptr_t)space % HUGE_BYTES);
    bool good = mmap(at, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, s->file, 0) == at;
    for (unsigned i = 0; good && i < s->npieces; i++) {
        memcpy(at, s->pieces[i].at, s->pieces[i].len);
        at += s->pieces[i].len;
        if (i + 1 == s->npieces)
            madvise(at - s->size, whole, MADV_COLLAPSE);
    }
    munmap(space, room);
    return good;
}

/* Made elsewhere, so that code is never writable and a piece is whole at every moment. The write
 * makes it a mapping whose entries a fork copies. */
static bool put_piece(const struct snapshot *s, const struct piece *p, size_t offset) {
    char *at = mmap(NULL, p->len, PROT_READ | PROT_WRITE, MAP_PRIVATE, s->file, (off_t)offset);
    if (at == MAP_FAILED)
        return false;
    if (p->len >= LARGE) {
        char first = *(volatile char *)at;
        *(volatile char *)at = first;
    }
    if (mprotect(at, p->len, p->prot) == 0 &&
        mremap(at, p->len, p->len, MREMAP_MAYMOVE | MREMAP_FIXED, p->at) == p->at)
        return true;
    munmap(at, p->len);
    return false;
}

/* Between the filling and the last piece nothing may write to what is replaced: no allocation, no
 * variable that is not on the stack. */
static void take(struct snapshot *s) {
    size_t offset = 0;
    if (!fill_file(s))
        return;
    for (unsigned i = 0; i < s->npieces && put_piece(s, &s->pieces[i], offset); i++)
        offset += s->pieces[i].len;
    fcntl(s->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
}

/* ---- what of it a kernel needs ---- */

/* Pages that lie side by side. */
struct run {
    uintptr_t page, n;
};

struct report { /* in memory that the scout and the zygote share */
    unsigned nruns;
    bool whole;
    struct run runs[MAX_RUNS];
};

static bool report_page(struct report *to, uintptr_t page) {
    struct run *last = to->nruns ? &to->runs[to->nruns - 1] : NULL;
    if (last && last->page + last->n == page) {
        last->n++;
        return true;
    }
    if (to->nruns == MAX_RUNS)
        return false;
    to->runs[to->nruns++] = (struct run){page, 1};
    return true;
}

static bool report_piece(struct report *to, int pagemap, const struct piece *p) {
    uint64_t entries[MAX_ENTRIES];
    for (uintptr_t page = (uintptr_t)p->at / PAGE, end = page + p->len / PAGE; page < end;) {
        size_t n = read_pages(pagemap, page, end, entries);
        for (size_t i = 0; i < n; i++) {
            if (entries[i] & PRESENT && !report_page(to, page + i))
                return false;
        }
        if (n == 0)
            return false;
        page += n;
    }
    return true;
}

static _Noreturn void be_scout(const struct snapshot *s, struct report *to, void (*life)(void)) {
    alarm(SCOUT_S);
    PyOS_AfterFork_Child();
    life();
    AUTO_FD pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC); /* its own */
    bool good = pagemap >= 0;
    for (unsigned i = 0; good && i < s->npieces; i++)
        good = s->pieces[i].len < LARGE || report_piece(to, pagemap, &s->pieces[i]);
    to->whole = good;
    _exit(0);
}

/* By reading, as the scout did: MADV_POPULATE_READ maps a whole huge page of the file (seen with
 * 6.18). */
static void populate(const struct snapshot *s, const struct report *r) {
    if (r && r->whole) {
        for (unsigned i = 0; i < r->nruns; i++) {
            for (uintptr_t k = 0; k < r->runs[i].n; k++)
                (void)*(const volatile char *)((r->runs[i].page + k) * PAGE);
        }
        return;
    }
    for (unsigned i = 0; i < s->npieces; i++) {
        if (s->pieces[i].len >= LARGE)
            madvise(s->pieces[i].at, s->pieces[i].len, MADV_POPULATE_READ);
    }
}

static void map_needed(const struct snapshot *s, void (*life)(void)) {
    struct report *r =
        mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    PyOS_BeforeFork();
    pid_t pid = r == MAP_FAILED ? -1 : fork();
    if (pid == 0)
        be_scout(s, r, life);
    PyOS_AfterFork_Parent();
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    populate(s, pid > 0 ? r : NULL);
    if (r != MAP_FAILED)
        munmap(r, sizeof *r);
}

static void name_of(const void *symbol, char out[64]) {
    Dl_info info;
    char real[PATH_MAX];
    out[0] = '\0';
    if (dladdr(symbol, &info) && info.dli_fname && realpath(info.dli_fname, real))
        snprintf(out, 64, "%.63s", real);
}

void memory_snapshot(void (*life)(void)) {
    struct snapshot s = {.file = memfd_create("zygote", MFD_CLOEXEC | MFD_ALLOW_SEALING),
                         .pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
                         .huge = is_worth()};
    AUTO_FD maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    struct err e;
    name_of((const void *)&Py_GetVersion, s.code[0]);
    name_of((const void *)&mallinfo2, s.code[1]); /* an address that no executable stands in for */
    char *text = mmap(NULL, MAPS_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s.file >= 0 && s.pagemap >= 0 && maps >= 0 && text != MAP_FAILED &&
        fd_read_all(maps, text, MAPS_MAX, NULL, &e) == 0) {
        find_pieces(&s, text);
        take(&s);
        map_needed(&s, life);
    }
    if (text != MAP_FAILED)
        munmap(text, MAPS_MAX);
    fd_close(&s.file);
    fd_close(&s.pagemap);
}

void memory_settle(void) {
    fill_pymalloc();
    fill_malloc();
    use_huge_pages();
}

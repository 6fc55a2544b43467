/* See memory.h. Two costs are fought, and both grow with what a profile preloads:
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
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_BYTES  (2ul << 20)
#define RANGE_BYTES (512ul << 20) /* address space, not memory */
#define SMALL_MAX   512           /* its largest size class */
#define MAX_HOLES   (64ul << 20)  /* bytes: whoever gives more has no pools (no pymalloc) */
#define MAX_FREED   4096
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
    struct arena_allocator ours = {NULL, arena_alloc, arena_free};
    set(&ours);
}

/* SECURITY: nothing is written to what is taken here: a hole holds what the zygote once had, no
 * more. */
static void fill_malloc(void) {
    struct mallinfo2 info = mallinfo2();
    const char *top = (const char *)sbrk(0) - info.keepcost;
    size_t holes = info.fordblks + info.fsmblks - info.keepcost, taken = 0;
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
 * What a fork has to copy entry by entry is private memory that was written to, and every library
 * has a little of it. So that is put into a sealed file in memory, and the file is mapped in its
 * place: a fork then has nothing to copy there, and a child maps what it reads, sixteen pages at a
 * time, and copies what it writes, as before. Large mappings stay as they are: they are made of
 * huge pages. */

#define PAGE        4096ul
#define PRESENT     (1ull << 63)
#define OF_FILE     (1ull << 61)
#define MAX_ENTRIES 4096
#define MAPS_MAX    (1ul << 20)

struct snapshot {
    int file, pagemap;
    off_t size;
};

/* Whether a page of the mapping is the zygote's own, and not a file's. */
static bool is_written(const struct snapshot *s, const char *from, const char *to) {
    uint64_t entries[MAX_ENTRIES];
    for (uintptr_t page = (uintptr_t)from / PAGE, end = (uintptr_t)to / PAGE; page < end;) {
        size_t n = end - page < MAX_ENTRIES ? end - page : MAX_ENTRIES;
        if (pread(s->pagemap, entries, n * 8, (off_t)(page * 8)) != (ssize_t)(n * 8))
            return false;
        for (size_t i = 0; i < n; i++) {
            if ((entries[i] & (PRESENT | OF_FILE)) == PRESENT)
                return true;
        }
        page += n;
    }
    return false;
}

static bool replace(struct snapshot *s, char *from, char *to, int prot) {
    size_t len = (size_t)(to - from);
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(s->file, from + done, len - done, s->size + (off_t)done);
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    if (mmap(from, len, prot, MAP_PRIVATE | MAP_FIXED, s->file, s->size) == MAP_FAILED)
        return false;
    s->size += (off_t)len;
    return true;
}

/* The length of a block that malloc has mapped by itself, if one begins here, else 0: it may one
 * day be made longer in place, and what follows in the file is not what should follow it. */
static size_t mapped_block(const char *at, const char *end) {
    const size_t *head = (const void *)at; /* glibc's: the size before, and this one's with bits */
    size_t size = head[1] & ~7ul;
    bool is = head[0] == 0 && (head[1] & 7) == 2 && size % PAGE == 0 && size > 0;
    return is && size <= (size_t)(end - at) ? size : 0;
}

static void replace_between_blocks(struct snapshot *s, char *from, char *to, int prot) {
    for (char *at = from; at < to;) {
        size_t block = mapped_block(at, to);
        if (block && from < at && !replace(s, from, at, prot))
            return;
        at += block ? block : PAGE;
        if (block)
            from = at;
    }
    if (from < to)
        replace(s, from, to, prot);
}

static void visit(struct snapshot *s, const char *line) {
    char *from, *to, mode[8], name[16] = "";
    unsigned long inode;
    if (sscanf(line, "%p-%p %7s %*x %*s %lu %15s", (void **)&from, (void **)&to, mode, &inode,
               name) < 4)
        return;
    int prot = strcmp(mode, "rw-p") == 0   ? PROT_READ | PROT_WRITE
               : strcmp(mode, "r--p") == 0 ? PROT_READ
                                           : 0;
    bool heap = strcmp(name, "[heap]") == 0;
    if (!prot || (name[0] == '[' && !heap))
        return;
    bool arenas = from >= range.begin && from < range.end;
    if (arenas)
        to = to < range.next ? to : range.next;
    if (to - from >= (ptrdiff_t)HUGE_BYTES || from >= to || !is_written(s, from, to))
        return;
    if (inode == 0 && !heap && !arenas)
        replace_between_blocks(s, from, to, prot);
    else
        replace(s, from, to, prot);
}

void memory_snapshot(void) {
    if (!is_worth())
        return;
    struct snapshot s = {.file = memfd_create("zygote", MFD_CLOEXEC | MFD_ALLOW_SEALING),
                         .pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)};
    AUTO_FD maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    struct err e;
    char *text = mmap(NULL, MAPS_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s.file >= 0 && s.pagemap >= 0 && maps >= 0 && text != MAP_FAILED &&
        fd_read_all(maps, text, MAPS_MAX, NULL, &e) == 0) {
        for (char *line = text, *next; *line; line = next) {
            next = line + strcspn(line, "\n");
            if (*next)
                *next++ = '\0';
            visit(&s, line);
        }
        fcntl(s.file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
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

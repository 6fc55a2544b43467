#pragma once
/* A store in a directory of its own, for each test; and files in it, by hand or through the store.
 */

#include "engine/store/store_copy.h"
#include "loop/loop.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define ID_A     "11111111-2222-4333-8444-aaaaaaaaaaaa"
#define ID_B     "11111111-2222-4333-8444-bbbbbbbbbbbb"
#define ID_C     "11111111-2222-4333-8444-cccccccccccc"

extern char path[64]; /* of the directory */
extern int dir;
extern struct loop *loop;
extern struct store *store;
extern const struct store_options boundless;

int setup(void **state);
int teardown(void **state);
void reopen(struct store_options o);
double real_now(void);

/* How many names there are, besides "." and "..". */
unsigned names_in_dir(void);
int exists(const char *name);
void put_file(const char *name, const char *text);
void put_meta(const char *id, const char *name, unsigned size, double uploaded);
void put_pair(const char *id, const char *text, double uploaded);

int add(const char *tenant, const char *name, const char *text, struct store_entry *ret,
        struct err *e);
struct store_entry must_add(const char *name, const char *text);
void assert_no_file(const char *tenant, const char *id);
void assert_holds(const char *id, const char *name, const char *text);
char *repeat(const char *piece, unsigned n);
void assert_lists(const char *tenant, const char *names);
struct store_copy_request copy_request(const char *name, int *fd, uint64_t size);
int copy_of(const char *name, int fd, uint64_t size, struct store_entry *ret, struct err *e);

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
